"""torch's collectives over a group of Ringlet's: what a process group and a back end have in common."""

from __future__ import annotations

import array
import secrets
from datetime import timedelta
from functools import partial
from typing import Any, Callable, List, Optional, Sequence, Tuple

import torch

import ringlet

from .arguments import COLLECTIVES, list_of, list_of_rank, one, op_of, seconds_of, stream_of
from .monitored import monitored_barrier
from .profiling import begin_event
from .sparse import add_sparse
from .tensors import as_reducible, both, bytes_overlap, copy, flat, joined, room_for, to_read, to_write
from .tracing import untraced_class
from .work import Work

Call = Tuple[int, float, bool]


@untraced_class
class Operations:
    """The calls of torch's process groups and back ends. A class that inherits from this and from one of them calls start_with()."""

    def start_with(self, group: ringlet.Group, store: Any, timeout: timedelta, events: str) -> None:
        self.ringlet = group
        self._handle = group._handle
        self._ringlet_store = store
        self._seconds = seconds_of(timeout)
        self._events = events
        self._sequence = 0
        self._barriers = 0
        # The store may have keys of a group that had the same name, of this process or of one before a restart.
        self._identity = group.broadcast_(array.array("Q", [secrets.randbits(64)]), timeout=self._seconds)[0]
        self._coalesced: Optional[List[Work]] = None

    def is_open(self) -> bool:
        """Whether shutdown() has not been called."""
        return self._handle.is_open()

    # What starts operations.

    def _call(self, options: Any, count: int = 1) -> Call:
        """The last arguments of `count` calls of the group's: their stream, their deadline, and whether each waits for its operation's end
        itself. torch says in the options of its calls if it waits right after."""
        timeout = getattr(options, "timeout", None)
        seconds = seconds_of(timeout) if timeout is not None else 0.0
        waits = count == 1 and self._coalesced is None and not getattr(options, "asyncOp", True)
        return COLLECTIVES, seconds if seconds > 0 else self._seconds, waits

    def _started(
        self,
        call: str,
        inputs: Sequence[Any],
        start: Callable[[], Sequence[Any]],
        results: List[Any],
        finish: Optional[Callable[[], None]] = None,
        source: Optional[int] = -1,
    ) -> Work:
        self._sequence += 1
        event = begin_event(f"{self._events}:{call}", inputs)
        try:
            work = Work(start(), results, finish, source)
        except BaseException:
            if event is not None:
                event.cancel()
            raise
        if event is not None:
            work.record(event)
        if self._coalesced is not None:
            self._coalesced.append(work)
        return work

    # Reductions.

    def allreduce(self, tensors: Any, opts: Any = None) -> Work:
        tensor = one(tensors)
        if tensor.is_sparse:
            return self.allreduce_sparse([tensor], opts)
        return self._all_reduced([tensor], op_of(opts), opts)

    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> Work:
        return self._all_reduced(list_of(tensors), op_of(opts), opts)

    def _all_reduced(self, tensors: List[torch.Tensor], op: str, opts: Any) -> Work:
        targets, finish, call = [], None, self._call(opts, len(tensors))
        for tensor in tensors:
            target, after = to_write(as_reducible(tensor, op), filled=True)
            targets.append(target.view)
            finish = both(finish, after)
        return self._started(
            "all_reduce",
            tensors,
            lambda: [self._handle.all_reduce(op, view, view, *call) for view in targets],
            tensors,
            finish,
        )

    def reduce(self, tensors: Any, opts: Any = None) -> Work:
        tensor, root, op = one(tensors), getattr(opts, "rootRank", 0), op_of(opts)
        is_root = self._handle.rank() == root
        target, finish = to_write(as_reducible(tensor, op), filled=True)
        call = self._call(opts)
        return self._started(
            "reduce",
            [tensor],
            lambda: [self._handle.reduce(op, target.view, target.view if is_root else None, root, *call)],
            [tensor],
            finish if is_root else None,
        )

    def reduce_scatter(self, outputs: Any, input_lists: Any, opts: Any = None) -> Work:
        output, inputs = one(outputs), list_of_rank(input_lists)
        self._check_parts(inputs, "input")
        counts, rank = [tensor.numel() for tensor in inputs], self._handle.rank()
        if output.numel() != counts[rank]:
            raise ringlet.InvalidArgument(f"the output has {output.numel()} elements; input {rank}, which is its own, has {counts[rank]}")
        return self._scattered([(output, joined(inputs), counts)], inputs, opts)

    def reduce_scatter_single(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> Work:
        return self._scattered([self._even_parts(output, input)], [input], opts)

    def reduce_scatter_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        return self._scattered([self._even_parts(output, input) for output, input in zip(outputs, inputs)], list(inputs), opts)

    def _even_parts(self, output: torch.Tensor, input: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor, None]:
        self._check_even("input", input, "output", output)
        return output, input, None

    def _check_even(self, whole_name: str, whole: torch.Tensor, part_name: str, part: torch.Tensor) -> None:
        if whole.numel() != part.numel() * self._handle.size():
            raise ringlet.InvalidArgument(
                f"{whole_name} tensor must be the same size as {part_name} size times world size: {whole.numel()} elements for "
                f"{self._handle.size()} of {part.numel()}"
            )

    def _scattered(self, parts: Sequence[tuple], inputs: List[torch.Tensor], opts: Any) -> Work:
        """Reduces and scatters several inputs, each for an output of its own."""
        op, call, calls, finish, outputs = op_of(opts), self._call(opts, len(parts)), [], None, []
        for output, whole, counts in parts:
            source = to_read(as_reducible(whole, op))
            result = output
            if bytes_overlap(output, source.tensor):
                result = torch.empty_like(output, memory_format=torch.contiguous_format)
            target, after = to_write(as_reducible(result, op))
            if result is not output:
                after = both(after, partial(copy, output, result))
            finish = both(finish, after)
            outputs.append(output)
            calls.append((source.view, target.view, counts))
        return self._started(
            "reduce_scatter",
            inputs,
            lambda: [self._handle.reduce_scatter(op, *views, *call) for views in calls],
            outputs,
            finish,
        )

    def allreduce_sparse(self, tensors: Any, opts: Any = None) -> Work:
        tensor, op = one(tensors), op_of(opts)
        if op != "sum":
            raise ringlet.InvalidArgument(f"sparse tensors are only added; there is no {op} of them")
        self._sequence += 1
        return add_sparse(self._handle, tensor, begin_event(f"{self._events}:sparse_all_reduce", [tensor]), self._call(opts)[1])

    # What moves without being computed with.

    def broadcast(self, tensors: Any, opts: Any = None) -> Work:
        tensor = one(tensors)
        root, call = getattr(opts, "rootRank", 0), self._call(opts)
        is_root = self._handle.rank() == root
        target, finish = to_write(tensor, filled=is_root)
        return self._started(
            "broadcast",
            [tensor],
            lambda: [self._handle.broadcast(target.view, root, *call)],
            [tensor],
            None if is_root else finish,
        )

    def allgather(self, output_lists: Any, inputs: Any, opts: Any = None) -> Work:
        outputs = list_of_rank(output_lists)
        return self._gathered([(outputs, one(inputs))], [outputs], opts)

    def allgather_coalesced(self, output_lists: Any, inputs: Any, opts: Any = None) -> Work:
        """output_lists[r][i] is what input i of rank r becomes."""
        parts = [([outputs[i] for outputs in output_lists], each) for i, each in enumerate(inputs)]
        return self._gathered(parts, list(output_lists), opts)

    def all_gather_single(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> Work:
        self._check_even("output", output, "input", input)
        return self._gathered([([output], input)], [output], opts)

    def all_gather_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        for output, input in zip(outputs, inputs):
            self._check_even("output", output, "input", input)
        return self._gathered([([output], each) for output, each in zip(outputs, inputs)], list(outputs), opts)

    def _gathered(self, parts: Sequence[Tuple[List[torch.Tensor], torch.Tensor]], results: List[Any], opts: Any) -> Work:
        """Gathers several inputs, each for outputs of its own: one for each rank, or one for all."""
        calls, finish, call, size = [], None, self._call(opts, len(parts)), self._handle.size()
        for outputs, own in parts:
            source = to_read(own)
            if len(outputs) == 1 and outputs[0].numel() == own.numel() * size:
                target, after = to_write(outputs[0])
                counts = None
            else:
                self._check_parts(outputs, "output")
                room, after = room_for(outputs)
                target = flat(room)
                sizes = [output.numel() for output in outputs]
                counts = None if len(set(sizes)) == 1 else [each * target.scale for each in sizes]
            finish = both(finish, after)
            calls.append((source.view, target.view, counts))
        return self._started(
            "all_gather",
            [own for _, own in parts],
            lambda: [self._handle.all_gather(*views, *call) for views in calls],
            results,
            finish,
        )

    def gather(self, output_lists: Any, inputs: Any, opts: Any = None) -> Work:
        own, root, call = one(inputs), getattr(opts, "rootRank", 0), self._call(opts)
        source, target, finish, counts, outputs = to_read(own), None, None, None, []
        if self._handle.rank() == root:
            outputs = list_of_rank(output_lists)
            self._check_parts(outputs, "output")
            room, finish = room_for(outputs)
            target = flat(room).view
        return self._started("gather", [own], lambda: [self._handle.gather(source.view, target, root, counts, *call)], outputs, finish)

    def gather_single(self, output: Optional[torch.Tensor], input: torch.Tensor, opts: Any = None) -> Work:
        root, call = getattr(opts, "rootRank", 0), self._call(opts)
        source, target, finish, outputs = to_read(input), None, None, []
        if self._handle.rank() == root:
            whole = one(output)
            self._check_even("output", whole, "input", input)
            to, finish = to_write(whole)
            target, outputs = to.view, [whole]
        return self._started("gather", [input], lambda: [self._handle.gather(source.view, target, root, None, *call)], outputs, finish)

    def scatter(self, outputs: Any, input_lists: Any, opts: Any = None) -> Work:
        output, root, call = one(outputs), getattr(opts, "rootRank", 0), self._call(opts)
        target, finish = to_write(output)
        source, inputs = None, []
        if self._handle.rank() == root:
            inputs = list_of_rank(input_lists)
            self._check_parts(inputs, "input")
            source = to_read(joined(inputs)).view
        return self._started(
            "scatter",
            inputs or [output],
            lambda: [self._handle.scatter(source, target.view, root, None, *call)],
            [output],
            finish,
        )

    def all_to_all_single(
        self, output: torch.Tensor, input: torch.Tensor, output_split_sizes: Any = (), input_split_sizes: Any = (), opts: Any = None
    ) -> Work:
        receive, send = self._split_of(output, output_split_sizes, "output"), self._split_of(input, input_split_sizes, "input")
        result = torch.empty_like(output, memory_format=torch.contiguous_format) if bytes_overlap(output, input) else output
        return self._exchanged(
            result, input, receive, send, [input], [output], None if result is output else lambda: copy(output, result), opts
        )

    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        for tensors, what in ((outputs, "output"), (inputs, "input")):
            self._check_parts(tensors, what)
        room, spread = room_for(outputs)
        whole = joined(inputs)
        if bytes_overlap(room, whole):
            whole = whole.clone()
        receive, send = ([tensor.numel() for tensor in tensors] for tensors in (outputs, inputs))
        return self._exchanged(room, whole, receive, send, list(inputs), list(outputs), spread, opts)

    def _exchanged(self, into: Any, of: Any, receive: Any, send: Any, inputs: Any, results: Any, finish: Any, opts: Any) -> Work:
        source, call = to_read(of), self._call(opts)
        target, after = to_write(into)
        counts = [each * source.scale for each in send], [each * target.scale for each in receive]
        return self._started(
            "all_to_all",
            inputs,
            lambda: [self._handle.all_to_all(source.view, target.view, counts, *call)],
            results,
            both(after, finish),
        )

    def _split_of(self, tensor: torch.Tensor, sizes: Any, what: str) -> List[int]:
        """How many elements go to, or come from, each rank."""
        size = self._handle.size()
        if not len(sizes or ()):
            if tensor.shape[0] % size if tensor.dim() else True:
                raise ringlet.InvalidArgument(
                    f"Tensor's dim 0 does not divide equally across group size: the {what} has the shape {tuple(tensor.shape)}"
                )
            return [tensor.numel() // size] * size
        if len(sizes) != size:
            raise ringlet.InvalidArgument(f"Number of tensor splits not equal to group size: {len(sizes)} for {size} ranks, of the {what}")
        if sum(sizes) != tensor.shape[0]:
            raise ringlet.InvalidArgument(
                f"Split sizes doesn't match total dim 0 size: {list(sizes)} of the {what} of {tensor.shape[0]} rows"
            )
        row = tensor.numel() // tensor.shape[0] if tensor.shape[0] else 0
        return [int(each) * row for each in sizes]

    def _check_parts(self, tensors: Sequence[torch.Tensor], what: str) -> None:
        if len(tensors) != self._handle.size():
            raise ringlet.InvalidArgument(f"{len(tensors)} {what} tensors for {self._handle.size()} ranks; there is one for each")

    def send(self, tensors: Any, dst: int, tag: int = 0) -> Work:
        source, stream = to_read(one(tensors)), stream_of(tag)
        return self._started(
            "send", [source.tensor], lambda: [self._handle.send(source.view, dst, stream, self._seconds)], list_of(tensors)
        )

    def recv(self, tensors: Any, src: int, tag: int = 0) -> Work:
        target, finish = to_write(one(tensors))
        stream = stream_of(tag)
        return self._started(
            "recv", list_of(tensors), lambda: [self._handle.recv(target.view, src, stream, self._seconds)], list_of(tensors), finish, src
        )

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Work:
        target, finish = to_write(one(tensors))
        stream = stream_of(tag)
        return self._started(
            "recvAnySource",
            list_of(tensors),
            lambda: [self._handle.recv_any(target.view, stream, self._seconds)],
            list_of(tensors),
            finish,
            None,
        )

    def barrier(self, opts: Any = None) -> Work:
        call = self._call(opts)
        return self._started("barrier", [], lambda: [self._handle.barrier(*call)], [])

    def monitored_barrier(self, opts: Any = None, wait_all_ranks: bool = False) -> None:
        timeout = opts if isinstance(opts, timedelta) else getattr(opts, "timeout", None)
        seconds = seconds_of(timeout) if timeout is not None and timeout >= timedelta(0) else self._seconds
        self._barriers += 1
        name = f"{self._identity:x}/{self._barriers}"
        monitored_barrier(self._ringlet_store, name, self._handle.rank(), self._handle.size(), seconds, wait_all_ranks)

    # Several calls as one.

    def start_coalescing(self, device: Any = None) -> None:
        self._coalesced = []

    def end_coalescing(self, device: Any = None) -> Work:
        works, self._coalesced = self._coalesced or [], None

        def finish() -> None:
            for work in works:
                work._ending.settle()
            for work in works:
                if work._ending.error is not None:
                    raise work._ending.error

        operations = [operation for work in works for operation in work._ending.operations]
        return Work(operations, [result for work in works for result in work.result()], finish)

    # The group itself.

    def set_timeout(self, timeout: timedelta) -> None:
        self._seconds = seconds_of(timeout)

    _set_default_timeout = set_timeout

    def shutdown(self) -> None:
        """Leaves the group, once its pending operations have ended."""
        self.ringlet.close()

    def abort(self) -> None:
        """Ends all operations of this process' world with Cancelled, and leaves it."""
        self.ringlet.leave()

    def _set_sequence_number_for_group(self) -> None:
        self._sequence = 0

    def _get_sequence_number_for_group(self) -> int:
        return self._sequence

    # The names of torch before 2.13.
    _allgather_base = all_gather_single
    _reduce_scatter_base = reduce_scatter_single
    alltoall_base = all_to_all_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
