#!/usr/bin/env python3
"""Tests of accuracy.py's own arithmetic and mapping. Usage: tests/measured/test_accuracy.py"""
import os
import sys
import unittest
import xml.etree.ElementTree

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import accuracy  # noqa: E402
import accuracy_plot  # noqa: E402

RUNS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "runs", "h200_runs.jsonl")


def made(predicted, measured=(100, 200, 200), **more):
    """A run whose three metrics are all the same."""
    peaks = [dict.fromkeys(accuracy.METRICS, value) for value in measured]
    steps = [dict.fromkeys((metric + "_bytes" for metric in accuracy.METRICS), value) for value in predicted]
    cfg = {"model": "M", "strategy": "single", "precision": "bf16", "seq": 1, "ac": True}
    return accuracy.Run(**{"row": 1, "cfg": cfg, "peaks": peaks, "died": False, "fits": True, "steps": steps, **more})


SECTIONS = {"published": "a table", "trinity": "another", "public": "a third"}


class Mapping(unittest.TestCase):
    def test_every_key(self):
        cfg = {"model": "Qwen3-8B", "strategy": "fsdp2", "precision": "fp32", "seq": 4096, "ac": False, "world": 8,
               "layers": 6, "batch": 3, "accum": 2, "sp": 4, "reshard": False, "offload": True, "fused": True,
               "loss": "chunked", "tied": False, "expandable": True, "cap_gib": 77.15, "trace": "t00", "steps": 3}
        self.assertEqual(accuracy.options(cfg), {
            "model": "Qwen3-8B", "gpu": "8xH200", "strategy": "fsdp2", "precision": "mixed", "context": "4096",
            "layers": "6", "batch": "3", "accum": "2", "sp": "4", "checkpointing": "off", "reshard": "off",
            "offload": "all", "optimizer": "adamw-fused", "loss": "chunked:2048", "tied": "off",
            "expandable": "on", "memory-limit": "77.15GiB"})

    def test_what_is_not_said_is_not_asked(self):
        self.assertEqual(accuracy.options({"model": "M"}), {"model": "M", "gpu": "1xH200"})

    def test_other_values(self):
        cfg = {"precision": "autocast", "loss": "hidden", "offload": False, "fused": False, "ac": True}
        self.assertEqual(accuracy.options(cfg), {
            "gpu": "1xH200", "precision": "autocast", "checkpointing": "on", "offload": "off",
            "optimizer": "adamw", "loss": "none"})

    def test_adapters(self):
        cfg = {"lora": 16, "targets": "q,v", "quantize": "nf4", "optimizer": "adamw-8bit", "loss": "liger"}
        self.assertEqual(accuracy.options(cfg), {
            "gpu": "1xH200", "lora": "16", "lora-targets": "q,v", "quantize": "nf4", "optimizer": "adamw-8bit",
            "loss": "liger"})

    def test_unknown_is_an_error(self):
        self.assertRaises(ValueError, accuracy.options, {"model": "M", "colour": "red"})
        self.assertRaises(KeyError, accuracy.options, {"model": "M", "loss": "other"})

    def test_every_measured_run_has_a_label_of_its_own(self):
        labels = [accuracy.label(run.cfg) for run in accuracy.read_runs(RUNS)]
        self.assertEqual(len(labels), 113)
        self.assertEqual(len(set(labels)), 113)

    def test_only(self):
        run = made([], cfg={"model": "M", "ac": True, "seq": 4096}, row=7)
        self.assertTrue(accuracy.chosen(run, ["model=M", "ac=true", "seq=4096", "row=7"]))
        self.assertFalse(accuracy.chosen(run, ["ac=false"]))
        self.assertFalse(accuracy.chosen(run, ["world=8"]))


class Arithmetic(unittest.TestCase):
    def test_percentile(self):
        self.assertEqual(accuracy.percentile([3, 1, 2], 0.5), 2)
        self.assertEqual(accuracy.percentile([4, 1, 2, 3], 0.5), 2.5)
        self.assertAlmostEqual(accuracy.percentile(range(101), 0.95), 95)
        self.assertAlmostEqual(accuracy.percentile([0, 10], 0.95), 9.5)
        self.assertEqual(accuracy.percentile([5], 0.95), 5)

    def test_error_is_that_of_the_worst_step_with_its_sign(self):
        run = made((101, 190, 202))
        self.assertAlmostEqual(run.error("allocated"), -0.05)
        strictest = min(accuracy.allowed(metric, run) for metric in accuracy.METRICS)
        self.assertAlmostEqual(run.badness(), 5 / strictest)

    def test_missing_step_is_all_wrong(self):
        self.assertEqual(made((100, 200)).error("reserved"), -1)

    def test_fewer_measured_steps(self):
        self.assertEqual(made((100, 200, 999), measured=(100, 200)).error("reserved"), 0)

    def test_experts_have_their_own_bar(self):
        dense, experts = made((100, 200, 200)), made((100, 200, 209), experts=True)
        values = {(metric, over, statistic): value
                  for metric, over, statistic, _, value in accuracy.judged([dense, experts])}
        self.assertEqual(values["allocated", "dense", "worst"], 0)
        self.assertAlmostEqual(values["allocated", "experts", "worst"], 4.5)
        self.assertAlmostEqual(values["reserved", "all", "worst"], 4.5)
        bars = {over: limit for metric, over, statistic, limit in accuracy.OVERALL
                if (metric, statistic) == ("allocated", "worst")}
        self.assertEqual(accuracy.allowed("allocated", dense), bars["dense"])
        self.assertEqual(accuracy.allowed("allocated", experts), bars["experts"])

    def test_files_have_their_own_bars(self):
        run = made((100, 200, 200), file="h200_zero.jsonl")
        worst = accuracy.FILES["h200_zero.jsonl"][2][2]
        self.assertEqual(accuracy.allowed("reserved", run), worst)
        bars = {(metric, over, statistic): limit for metric, over, statistic, limit, _ in accuracy.judged([run])}
        self.assertEqual(bars["reserved", "h200_zero.jsonl", "worst"], worst)
        self.assertNotIn(("reserved", "all", "worst"), bars)    # which is over every file

    def test_bars_are_rounded_up_in_the_second_digit(self):
        for value, bar in ((0, 0), (7.552, 7.6), (0.9012, 0.91), (0.0516, 0.052), (2.31, 2.4), (12, 12), (5.0, 5.0)):
            self.assertEqual(accuracy.rounded_up(value), bar)

    def test_bars_are_what_was_reached(self):
        """A bar of more digits was widened by hand."""
        bars = [bar[-1] for bar in accuracy.OVERALL] + [bar[-1] for name in accuracy.FILES for bar in accuracy.bars_of_file(name)]
        self.assertEqual(bars, [accuracy.rounded_up(bar) for bar in bars])

    def test_ranges(self):
        self.assertEqual(accuracy.ranges([1, 2, 3, 7, 9, 10]), "1-3, 7, 9-10")


class Verdict(unittest.TestCase):
    def test_met(self):
        self.assertTrue(accuracy.all_met([made((100, 200, 200))]))

    def test_refused(self):
        runs = [made((100, 200, 200)), made((), refusal="no such option", fits=None)]
        self.assertFalse(accuracy.all_met(runs))
        self.assertTrue(accuracy.all_met(runs, every=False))
        self.assertEqual(accuracy.too_few(runs), ["- : 1 runs are predicted, not 2"])

    def test_fewer_than_the_file_had(self):
        runs = [made((100, 200, 200), file="h200_zero.jsonl")] * 26
        self.assertEqual(accuracy.too_few(runs), ["- h200_zero.jsonl: 26 runs are predicted, not 27"])

    def test_missed(self):
        self.assertFalse(accuracy.all_met([made((100, 200, 203))]))

    def test_nothing_predicted(self):
        self.assertFalse(accuracy.all_met([made((), refusal="no such option", fits=None)]))

    def test_said_to_fit_but_died(self):
        good, died = made((100, 200, 200)), made((), measured=(), died=True)
        self.assertFalse(accuracy.all_met([good, died]))
        died.fits = False
        self.assertTrue(accuracy.all_met([good, died]))

    def evidence(self, **more):
        return {"evidence": {"kind": "a kind", "runs": 1, "allocated_worst": 0.05, "reserved_median": 0.05,
                             "reserved_worst": 0.05, "reserved_short": 0.053, "reserved_margin": 0.053, **more}}

    def test_evidence_is_what_was_measured(self):
        run = made((100, 190, 200), reply=self.evidence())
        self.assertEqual(accuracy.evidence_lines([run]), [])
        for said in ({"reserved_worst": 0.049}, {"reserved_short": 0.05}, {"runs": 2}):
            run.reply = self.evidence(**said)
            self.assertEqual(len(accuracy.evidence_lines([run])), 1, said)
        run.reply = self.evidence(allocated_worst=0.06)
        self.assertEqual(accuracy.evidence_lines([run]), [])
        self.assertEqual(len(accuracy.evidence_hints([run])), 1)

    def test_evidence_of_one_file_may_be_wider(self):
        run = made((100, 190, 200), reply=self.evidence(runs=7, reserved_worst=0.06), file="h200_zero.jsonl")
        self.assertEqual(accuracy.evidence_lines([run]), [])
        run.reply = self.evidence(runs=7, reserved_worst=0.04)
        self.assertEqual(len(accuracy.evidence_lines([run])), 1)

    def test_measured_and_said_not_to_be(self):
        run = made((100, 200, 200), reply=self.evidence(kind="not measured", runs=0))
        self.assertIn("said not to be", accuracy.evidence_lines([run])[0])

    def test_few_runs_are_trusted_no_more_than_all(self):
        run = made((100, 190, 200), reply=self.evidence(reserved_margin=0.04))
        self.assertIn("95 %", accuracy.evidence_lines([run])[0])

    def test_what_the_driver_showed(self):
        run = made((100, 200, 200), reply={"driver_low_bytes": 10, "driver_high_bytes": 20}, driver=20)
        self.assertEqual(accuracy.driver_lines([run]), [])
        run.driver = 21
        self.assertEqual(len(accuracy.driver_lines([run])), 1)

    def test_document(self):
        runs = [made((100, 200, 203)), made((), refusal="no sp", fits=None, row=2)]
        text = accuracy.document(runs, "r.jsonl", SECTIONS)
        for words in ("**+1.50 % missed**", "- no sp (1: row 2)", "2 runs: 1 predicted, 1 not modelled", "**missed**"):
            self.assertIn(words, text)
        self.assertEqual(text, accuracy.document(runs, "r.jsonl", SECTIONS))


class Trials(unittest.TestCase):
    """Runs that a store of trials gave."""
    ROW = {"settings": {"model": "M", "gpu": "2xA100-80G", "recipe": "trinity", "context": "8192"},
           "peaks": [dict.fromkeys(accuracy.METRICS, 100)]}

    def run_of(self, **more):
        run = accuracy.run_of(1, "h200_probe.jsonl", {**self.ROW, **more})
        run.fits, run.steps = True, [dict.fromkeys((metric + "_bytes" for metric in accuracy.METRICS), 101)] * 2
        return run

    def test_settings_are_taken_as_they_are(self):
        run = self.run_of()
        self.assertEqual(run.settings, self.ROW["settings"])
        self.assertEqual(accuracy.label(run.settings), "M 2xA100-80G 8192, recipe trinity")
        self.assertEqual([name for name, *_ in accuracy.grouped([run], "strategy")], ["trinity's own"])
        self.assertTrue(accuracy.chosen(run, ["recipe=trinity", "row=1"]))

    def test_a_peak_of_the_whole_run(self):
        run = self.run_of(peaks=[], peak={"allocated": 100, "reserved": 202})
        self.assertAlmostEqual(run.error("allocated"), 0.01)
        self.assertAlmostEqual(run.error("reserved"), -0.5)
        self.assertEqual(run.errors("end_allocated"), [])
        self.assertEqual(accuracy.compared([run]), [run])
        self.assertEqual(accuracy.trial_cells(run, "end_allocated"), ["-", "-", "-"])

    def test_agreement(self):
        good, fooled = self.run_of(), self.run_of(oom=True)
        self.assertIn("1 of 2 trials ended as predicted. Out of memory, though predicted to fit: 1;",
                      accuracy.agreement([good, fooled]))
        self.assertIn("**fits**", accuracy.trial_row(fooled))

    def test_deaths(self):
        early, later = self.run_of(oom=True, peaks=[]), self.run_of(oom=True)
        early.fits = later.fits = False
        self.assertIn("Died in their first step, as predicted: row 1.", accuracy.early_deaths([early, later]))
        self.assertEqual(accuracy.early_deaths([self.run_of(), later]), "")
        self.assertTrue(accuracy.run_row(later)[1].endswith(", died as predicted"))
        self.assertTrue(accuracy.run_row(self.run_of(oom=True))[1].endswith(", died, **said to fit**"))

    def test_document_tells_of_them(self):
        text = accuracy.document([self.run_of(), self.run_of(oom=True)], "r.jsonl", SECTIONS)
        self.assertIn("Runs of `h200_probe.jsonl` have their settings beside them", text)
        self.assertNotIn(accuracy.DIED, text)
        self.assertIn(accuracy.DIED, accuracy.document([made((100, 200, 200))], "r.jsonl", SECTIONS))


class Plot(unittest.TestCase):
    def test_is_xml_inside_its_frame(self):
        plot = accuracy_plot.scatter({"allocated": [(2**30, 2**31), (2**36, 0)], "reserved": [(2**33, 2**33)]})
        root = xml.etree.ElementTree.fromstring(plot)
        circles = list(root.iter("{http://www.w3.org/2000/svg}circle"))
        self.assertEqual(len(circles), 4)    # two dots and two of the legend
        for circle in circles:
            self.assertTrue(70 <= float(circle.get("cx")) <= 630 and 20 <= float(circle.get("cy")) <= 580)

    def test_nothing_to_draw(self):
        xml.etree.ElementTree.fromstring(accuracy_plot.scatter({"allocated": [], "reserved": []}))


if __name__ == "__main__":
    unittest.main()
