"""What rank 0 is told by ranks that are not there: its own values, of the shape that real ones would have."""
import accelerate
import torch
import torch.distributed as dist

dist.init_process_group("nccl", timeout=None)
world = dist.get_world_size()
mine = torch.arange(2.0 * world)


def empty(*shape):
    return torch.full(shape, float("nan"))


part = empty(2)
dist.reduce_scatter_tensor(part, mine)
assert part.tolist() == [0, 1], part
part = empty(2)
dist.scatter(tensor=part, scatter_list=[torch.ones(2)] * world)
assert part.tolist() == [1, 1], part
part = empty(2)
dist.reduce_scatter_tensor(output=part, input=mine, async_op=True).wait()
assert part.tolist() == [0, 1], part
swapped = empty(2 * world)
dist.all_to_all_single(swapped, mine)
assert torch.equal(swapped, mine), swapped
everything = [None] * world
dist.all_gather_object(everything, "mine")
assert everything == ["mine"] * world, everything
everything = [None] * world
dist.gather_object("mine", everything)
assert everything == ["mine"] * world, everything
dealt = [None]
dist.scatter_object_list(dealt, list(range(world)))
assert dealt == [0], dealt
dist.monitored_barrier()
assert dist.new_group([0, 1], backend="gloo").size() == 2
assert torch.distributed.init_device_mesh("cpu", (world // 2, 2), mesh_dim_names=("a", "b"))["a"].size() == world // 2

state = accelerate.PartialState(cpu=True)
state.backend = "nccl"  # as on GPUs, where Accelerate gathers into one flat tensor
assert accelerate.utils.gather(torch.ones(3, 2)).shape == (3 * world, 2)
assert accelerate.utils.gather(torch.tensor(1.0)).tolist() == [1] * world
print("all as it should be")
