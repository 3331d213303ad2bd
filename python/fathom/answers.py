"""What comes back: the program's JSON, with names for what people look at. `json` has everything."""
import dataclasses
import html
from typing import Any, Optional

GIB = 2**30


def alone(what):
    """A remedy without the word that joins it to those above it in the program's table."""
    return what.removeprefix("or ").removeprefix("and ")


@dataclasses.dataclass(frozen=True)
class Answer:
    json: dict[str, Any] = dataclasses.field(repr=False)

    @classmethod
    def of(cls, reply):
        """From a reply: fields by their names, objects and lists of them as their own classes."""
        values = {}
        for field in dataclasses.fields(cls):
            if field.name == "json":
                values["json"] = reply
                continue
            value, kind = reply.get(field.name), field.metadata.get("of")
            if kind and isinstance(value, list):
                value = [kind.of(item) for item in value]
            elif kind and value is not None:
                value = kind.of(value)
            values[field.name] = value
        return cls(**values)


def _of(kind):
    return dataclasses.field(metadata={"of": kind})


@dataclasses.dataclass(frozen=True)
class Peak(Answer):
    allocated_bytes: int
    requested_bytes: Optional[int]
    reserved_bytes: int
    driver_bytes: Optional[int]
    phase: Optional[str]


@dataclasses.dataclass(frozen=True)
class Step(Answer):
    allocated_bytes: int
    requested_bytes: int
    reserved_bytes: int
    end_allocated_bytes: int
    retries: int


@dataclasses.dataclass(frozen=True)
class Phase(Answer):
    name: str
    allocated_bytes: int
    reserved_bytes: int
    host_bytes: Optional[int]


@dataclasses.dataclass(frozen=True)
class Breakdown(Answer):
    what: str
    bytes: int


@dataclasses.dataclass(frozen=True)
class Prediction(Answer):
    """Whether a configuration fits, and why."""
    settings: dict[str, Any]
    fits: bool
    verdict: str  # "safe", "tight" or "no"
    needs_bytes: int
    capacity_bytes: int
    margin_bytes: Optional[int]
    peak: Peak = _of(Peak)
    phases: list[Phase] = _of(Phase)
    steps: list[Step] = _of(Step)
    breakdown: list[Breakdown] = _of(Breakdown)
    decided_by: Optional[str] = None
    host_bytes: Optional[int] = None
    time: Optional[dict[str, Any]] = None
    oom: Optional[dict[str, Any]] = None
    remedies: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    warnings: list[Any] = dataclasses.field(default_factory=list)

    def __str__(self):
        needs, capacity = self.needs_bytes / GIB, self.capacity_bytes / GIB
        said = {"safe": "fits", "tight": "fits, but tightly", "no": "does not fit"}[self.verdict]
        lines = [f"{self.settings['model']}, {self.settings['context']} tokens on {self.settings['gpu']}: {said}; "
                 f"it needs {needs:.2f} GiB of {capacity:.2f} GiB a GPU"]
        if self.decided_by and self.decided_by != "train":
            lines.append(f"decided while it is to {self.decided_by}")
        lines += [f"would fit: {alone(remedy['what'])} ({remedy['options']})" for remedy in self.remedies if remedy["fits"]]
        return "\n".join(lines)

    def _repr_html_(self):
        """A bar of the card by part, for notebooks; it has no script."""
        rows = [(part.what, part.bytes) for part in self.breakdown]
        largest = max((size for _, size in rows), default=1)
        cells = "".join(
            f"<tr><td>{html.escape(what)}</td><td style='text-align:right'>{size / GIB:.2f} GiB</td><td>"
            f"<svg role='img' aria-label='{size / GIB:.2f} GiB' width='240' height='12'>"
            f"<rect width='{max(1, round(240 * size / largest))}' height='12' fill='#0072b2'/></svg></td></tr>"
            for what, size in rows)
        return f"<p>{html.escape(str(self)).replace(chr(10), '<br>')}</p><table>{cells}</table>"


@dataclasses.dataclass(frozen=True)
class Limit(Answer):
    """The longest context that trains."""
    settings: dict[str, Any]
    max_context: Optional[int]
    fails_at: Optional[int]
    step: Optional[int]


@dataclasses.dataclass(frozen=True)
class Plan(Answer):
    """The best configuration; `best` is None where nothing is safe. `json` has why others lost."""
    settings: dict[str, Any]
    goal: str
    best: Optional[dict[str, Any]]
    alternatives: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    def __str__(self):
        if not self.best:
            return "nothing is safe"
        return (f"{self.best['time']['step_s']:.3g} s a step, {self.best['reserved_bytes'] / GIB:.2f} GiB reserved:\n"
                f"{self.best['command']}")


@dataclasses.dataclass(frozen=True)
class Emitted(Answer):
    """Files for a framework: `files` maps their names to their texts."""
    settings: dict[str, Any]
    fits: bool
    verdict: str
    files: Any

    @classmethod
    def of(cls, reply):
        files = {file["name"]: file["content"] for file in reply["files"]}
        return cls(reply, reply["settings"], reply["fits"], reply["verdict"], files)


@dataclasses.dataclass(frozen=True)
class Doctor(Answer):
    """Why a run died; `json` has all of it."""
    found: bool
    cause: Optional[Any]
    what_to_change: Optional[Any]


@dataclasses.dataclass(frozen=True)
class Replay(Answer):
    """A recorded history in an exact copy of torch's allocator; `json` has all of it."""
