"""What a release's replicas are told: by its guard, by an operator, and after a restart."""

from __future__ import annotations

from outrider.config.schema import ServingSettings
from outrider.core import Mode
from outrider.engine.draft_sums import DraftSums
from outrider.serving.guard import Guard
from outrider.serving.guard_state import Phase
from outrider.serving.messages import Control, Pulse

SETTINGS = ServingSettings(
    fallback_min_acceptance=0.2,
    fallback_window_s=10.0,
    fallback_min_drafted=100,
    fallback_wait_s=30.0,
    fallback_probe_share=0.25,
)
CAPPED = Control(max_draft_length=4)


class World:
    """Replicas that draft, looked at every second."""

    def __init__(self, guard: Guard | None = None, replicas: tuple[str, ...] = ("a", "b")) -> None:
        self.guard = guard or Guard()
        self.drafts = dict.fromkeys(replicas, DraftSums(1000, 1000))
        self.now_s = 0.0

    def run(self, seconds: int, drafted: int, accepted: int) -> World:
        for _ in range(seconds):
            self.now_s += 1.0
            more = DraftSums(drafted, accepted)
            self.drafts = {name: sums + more for name, sums in self.drafts.items()}
            pulses = [
                Pulse(replica=name, control=Control(), drafts=sums)
                for name, sums in self.drafts.items()
            ]
            self.guard = self.guard.after(pulses, SETTINGS, self.now_s)
        return self

    @property
    def phase(self) -> Phase:
        return self.guard.state.phase

    @property
    def control(self) -> Control:
        return self.guard.control(SETTINGS)


def test_a_collapse_over_all_replicas_takes_speculation_back_and_good_probes_bring_it() -> None:
    world = World(Guard(said=CAPPED)).run(30, 20, 15)
    assert (world.phase, world.control) == (Phase.CLOSED, CAPPED)
    world.run(10, 20, 0)
    assert world.phase is Phase.OPEN
    assert world.control == Control(mode=Mode.PLAIN, max_draft_length=4, guard_wait_s=30.0)
    world.run(30, 0, 0)
    assert world.phase is Phase.PROBING
    assert world.control == Control(
        mode=Mode.PLAIN, max_draft_length=4, probe_share=0.25, guard_wait_s=30.0
    )
    world.run(60, 1, 1)  # slowly: what the probes give is summed for as long as it takes
    assert world.phase is Phase.CLOSED
    assert world.control == Control(max_draft_length=4, guard_wait_s=30.0)


def test_one_bad_replica_of_many_is_no_collapse() -> None:
    world = World(replicas=tuple("abcdefgh")).run(1, 0, 0)
    for _ in range(30):
        world.drafts["a"] += DraftSums(400, 0)  # it alone accepts 5 %, all of them 22 %
        world.run(1, 40, 20)
    assert world.phase is Phase.CLOSED


def test_what_was_counted_before_it_was_watched_or_by_an_engine_anew_tells_nothing() -> None:
    world = World()
    world.drafts = {"a": DraftSums(10**6, 0)}
    world.run(20, 0, 0)
    world.drafts = {"a": DraftSums(500, 0), "c": DraftSums(10**6, 0)}
    world.run(20, 0, 0)
    assert world.phase is Phase.CLOSED


def test_what_it_fell_on_is_not_held_against_the_probes() -> None:
    world = World().run(11, 20, 0)
    assert world.phase is Phase.OPEN
    world.run(26, 20, 0)  # a replica that had not heard of it
    assert world.phase is Phase.PROBING
    world.run(4, 20, 19)
    assert world.phase is Phase.CLOSED


def test_an_operators_plain_is_never_brought_back() -> None:
    world = World().run(11, 20, 0)
    plain = Control(mode=Mode.PLAIN)
    world.guard = world.guard.told(plain, world.now_s)
    for _ in range(3):
        world.run(100, 20, 20).run(100, 20, 0)
        assert (world.phase, world.control) == (Phase.CLOSED, plain)


def test_an_operators_speculative_begins_a_new_guard() -> None:
    world = World().run(11, 20, 0)
    world.guard = world.guard.told(Control(), world.now_s)
    assert (world.phase, world.control) == (Phase.CLOSED, Control())
    assert "operator" in world.guard.state.reason
    world.run(10, 20, 0)
    assert (world.phase, world.guard.state.wait_s) == (Phase.OPEN, 30.0)


def test_a_new_gateway_goes_on_with_what_the_replicas_were_told() -> None:
    world = World(Guard(said=CAPPED)).run(11, 20, 0)
    stories = [Guard(said=CAPPED), Guard(said=Control(mode=Mode.PLAIN)), world.guard]
    stories.append(world.run(30, 0, 0).guard)
    stories.append(world.run(3, 20, 20).guard)
    phases = []
    for guard in stories:
        control = guard.control(SETTINGS)
        resumed = Guard.resumed([control], 500.0)
        assert resumed.control(SETTINGS) == control
        assert (resumed.said, resumed.state.phase) == (guard.said, guard.state.phase)
        assert resumed.state.since_s == 500.0
        phases.append(resumed.state.phase)
    assert phases == [Phase.CLOSED, Phase.CLOSED, Phase.OPEN, Phase.PROBING, Phase.CLOSED]


def test_where_only_some_replicas_had_heard_of_a_fall_the_new_gateway_tells_the_others() -> None:
    fallen = World().run(11, 20, 0).control
    assert Guard.resumed([Control(), fallen], 0.0).control(SETTINGS) == fallen
