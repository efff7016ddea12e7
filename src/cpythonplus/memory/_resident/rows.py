"""The tuples that `_native` returns; its docstrings describe them."""

ArenaRow = tuple[int, int, int, int, int, int, int]
ChunkRow = tuple[int, int, int, bool]
CHeapRow = tuple[int, int, int, int, int, int, list[ChunkRow], int]
OwnerRow = tuple[int, object, bool]
OwnRow = tuple[int, int, int]
PinRow = tuple[type | None, bool, int, int, int, object]
ArenaRows = tuple[int, int, list[ArenaRow], list[PinRow], list[OwnerRow], int, bool, int, OwnRow]
