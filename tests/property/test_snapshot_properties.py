"""S1, B5: however a snapshot is changed step by step, it equals one that is built at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from property.budget import FEWER
from skillwire.catalog.snapshot import ReadFolder, SkillRecord, Snapshot
from skillwire.skill.entry import SkillEntry, SkillMeta

PATHS = st.sampled_from(["a", "A", "a/b", "A/b", "a/B", "c", "c/d", "C/d", "e-f"])
FACTS = st.tuples(st.sampled_from(["served", "unlisted", "refused", "note"]), st.integers(0, 2))


def found(path: str, kind: str, version: int) -> ReadFolder:
    if kind == "note":
        return ReadFolder()
    entry = SkillEntry(f"skill://{path}/SKILL.md", {"v": version}, (), SkillMeta(listed=kind == "served"))
    return ReadFolder(True, None if kind == "refused" else SkillRecord(entry, {}, frozenset()))


STEPS = st.lists(st.tuples(st.dictionaries(PATHS, FACTS, max_size=4), st.sets(PATHS, max_size=4)), max_size=8)


@FEWER
@given(STEPS)
def test_a_snapshot_changed_in_steps_equals_one_built_at_once(
    steps: list[tuple[dict[str, tuple[str, int]], set[str]]],
) -> None:
    snapshot, state = Snapshot(), dict[str, ReadFolder]()
    for additions, removals in steps:
        before = snapshot
        new = {path: found(path, *facts) for path, facts in additions.items()}
        gone = [path for path in sorted(removals | additions.keys()) if path in state]
        snapshot, change = snapshot.updated(gone, new)
        state = {path: item for path, item in state.items() if path not in gone} | new
        whole, _ = Snapshot().updated((), state)
        assert snapshot.keys == whole.keys
        assert list(snapshot.records()) == list(whole.records())
        assert snapshot.paths_below("") == whole.paths_below("")
        assert set(snapshot.problems()) == set(whole.problems())
        old = {path: record.entry for path, record in before.records()}
        now = {path: record.entry for path, record in snapshot.records()}
        both = now.keys() & old.keys()
        listed = {path for path in both if now[path].listed and not old[path].listed}
        unlisted = {path for path in both if old[path].listed and not now[path].listed}
        changed = {path for path in both - listed - unlisted if now[path] != old[path]}
        assert change.added == {now[path].uri for path in (now.keys() - old.keys()) | listed}
        assert change.removed == {old[path].uri for path in (old.keys() - now.keys()) | unlisted}
        assert change.changed == {now[path].uri for path in changed}
