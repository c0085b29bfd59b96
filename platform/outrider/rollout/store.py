"""What is remembered of rollouts, across the death of whoever controls them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from outrider.config.schema import GateSettings, PlanSettings
from outrider.core import Fault, UserError
from outrider.rollout.command import Command, Verb
from outrider.rollout.database import Database
from outrider.rollout.phase import ENDS, Phase
from outrider.rollout.status import Move, Status
from outrider.rollout.stored import (
    gates_of_text,
    judgement_of,
    move_of,
    parsed,
    plan_of_text,
    status_of,
    text_of,
)
from outrider.rollout.sums import Sums
from outrider.rollout.tables import COMMANDS, MOVES, NOTES, ROLLOUTS
from outrider.rollout.verdict import Judgement
from outrider.serving.sample import Cursor

SETTLED = "settled"  # note: the service and the aliases are as the end of a rollout says


class LostError(Fault):
    """Somebody else has written to this rollout since it was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """One rollout with its evidence. Plan and gates are those it began with."""

    status: Status
    plan: PlanSettings
    gates: GateSettings
    sums: Sums
    cursor: Cursor = field(default_factory=Cursor)
    judgement: Judgement = field(default_factory=Judgement)
    num_writes: int = 0


class Store:
    """Rollouts in a database. Every method is one transaction; Fault while nobody answers."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def begin(
        self,
        status: Status,
        plan: PlanSettings,
        gates: GateSettings,
        *,
        superseded: tuple[Rollout, Status, Sequence[Move]] | None = None,
    ) -> Rollout:
        """Write a new rollout down. UserError where its service has an active one.

        `superseded`: a rollout as it was read, how it ends, and its last moves; it ends in the
        same transaction, so that the service is never without an answer to which one is active.
        """
        begun = Rollout(status=status, plan=plan, gates=gates, sums=Sums())
        try:
            with self.database.transaction() as connection:
                if superseded is not None:
                    before, ended, moves = superseded
                    _write(connection, replace(before, status=ended), moves)
                connection.execute(insert(ROLLOUTS).values(**_new_row(begun)))
        except IntegrityError:
            raise UserError(
                f"{status.service} has an active rollout: see action=status, or action=abort it"
            ) from None
        return begun

    def get(self, rollout_id: str) -> Rollout:
        found = self._rollouts(ROLLOUTS.c.rollout_id == rollout_id)
        if not found:
            raise UserError(f"there is no rollout {rollout_id!r}")
        return found[0]

    def num_writes(self, rollout_id: str) -> int:
        """As of `Rollout`: whether somebody wrote since it was read."""
        wanted = select(ROLLOUTS.c.num_writes).where(ROLLOUTS.c.rollout_id == rollout_id)
        with self.database.transaction() as connection:
            return int(connection.execute(wanted).scalar_one())

    def active(self, service: str) -> Rollout | None:
        return next(iter(self._rollouts(ROLLOUTS.c.active == service)), None)

    def history(self, service: str) -> tuple[Rollout, ...]:
        """All rollouts of a service, the newest first."""
        return tuple(self._rollouts(ROLLOUTS.c.service == service))

    def newest(self, service: str) -> Rollout | None:
        return next(iter(self._rollouts(ROLLOUTS.c.service == service, most=1)), None)

    def unfinished(self, service: str) -> Rollout | None:
        """The newest rollout, where it is over and the service may not follow its end yet."""
        newest = self.newest(service)
        if newest is None or newest.status.phase not in ENDS - {Phase.SUPERSEDED}:
            return None  # what was superseded is seen to by the next one
        return None if self.note(newest.status.rollout_id, SETTLED) else newest

    def commit(
        self, rollout: Rollout, moves: Sequence[Move] = (), taken: Sequence[Command] = ()
    ) -> Rollout:
        """Write the rollout, its new moves, and that these commands were taken: all or nothing.

        Raises LostError where somebody wrote since it was read.
        """
        with self.database.transaction() as connection:
            _write(connection, rollout, moves)
            numbers = [command.number for command in taken]
            is_taken = update(COMMANDS).where(COMMANDS.c.number.in_(numbers)).values(is_taken=True)
            connection.execute(is_taken)
        return replace(rollout, num_writes=rollout.num_writes + 1)

    def moves(self, rollout_id: str) -> tuple[Move, ...]:
        wanted = select(MOVES.c.move).where(MOVES.c.rollout_id == rollout_id)
        with self.database.transaction() as connection:
            rows = connection.execute(wanted.order_by(MOVES.c.number)).all()
        return tuple(move_of(parsed(row.move)) for row in rows)

    def order(self, rollout_id: str, command: Command) -> Command:
        """Leave a command for whoever controls the rollout; returned with its number."""
        row = {
            "rollout_id": rollout_id,
            "verb": command.verb.value,
            "who": command.who,
            "why": command.why,
            "at_s": command.at_s,
            "is_taken": False,
        }
        with self.database.transaction() as connection:
            made = connection.execute(insert(COMMANDS).values(**row)).inserted_primary_key
        assert made is not None
        return replace(command, number=int(made[0]))

    def commands(self, rollout_id: str, *, waiting: bool = False) -> tuple[Command, ...]:
        """What operators asked for, in order; only what nobody has taken yet, where `waiting`."""
        wanted = select(COMMANDS).where(COMMANDS.c.rollout_id == rollout_id)
        if waiting:
            wanted = wanted.where(COMMANDS.c.is_taken.is_(False))
        with self.database.transaction() as connection:
            rows = connection.execute(wanted.order_by(COMMANDS.c.number)).all()
        return tuple(_command(row) for row in rows)

    def note(self, rollout_id: str, name: str) -> str:
        """What was noted under a name; empty where nothing was."""
        wanted = select(NOTES.c.text).where(NOTES.c.rollout_id == rollout_id, NOTES.c.name == name)
        with self.database.transaction() as connection:
            return str(connection.execute(wanted).scalar() or "")

    def keep(self, rollout_id: str, name: str, text: str) -> None:
        """Note something, in place of what was there."""
        is_it = (NOTES.c.rollout_id == rollout_id) & (NOTES.c.name == name)
        with self.database.transaction() as connection:
            changed = connection.execute(update(NOTES).where(is_it).values(text=text))
            if not changed.rowcount:
                row = {"rollout_id": rollout_id, "name": name, "text": text}
                connection.execute(insert(NOTES).values(**row))

    def num_noted(self, fingerprint: str, name: str, *, but: str) -> int:
        """How many rollouts of a release, one apart, have something under a name."""
        wanted = (
            select(func.count())
            .select_from(NOTES.join(ROLLOUTS))
            .where(
                ROLLOUTS.c.fingerprint == fingerprint,
                ROLLOUTS.c.rollout_id != but,
                NOTES.c.name == name,
            )
        )
        with self.database.transaction() as connection:
            return int(connection.execute(wanted).scalar_one())

    def _rollouts(self, which: ColumnElement[bool], most: int | None = None) -> list[Rollout]:
        wanted = select(ROLLOUTS).where(which).order_by(ROLLOUTS.c.began_s.desc()).limit(most)
        with self.database.transaction() as connection:
            rows = connection.execute(wanted).all()
        return [_rollout(row) for row in rows]


def _write(connection: Connection, rollout: Rollout, moves: Sequence[Move]) -> None:
    rollout_id = rollout.status.rollout_id
    which, num_writes = ROLLOUTS.c.rollout_id == rollout_id, ROLLOUTS.c.num_writes
    is_as_read = which & (num_writes == rollout.num_writes)
    values = _row(rollout) | {"num_writes": rollout.num_writes + 1}
    if connection.execute(update(ROLLOUTS).where(is_as_read).values(**values)).rowcount != 1:
        raise LostError(f"rollout {rollout_id}: another process controls it")
    if moves:
        counted = select(func.count()).where(MOVES.c.rollout_id == rollout_id)
        first = connection.execute(counted).scalar_one() + 1
        rows = [
            {"rollout_id": rollout_id, "number": number, "move": text_of(move)}
            for number, move in enumerate(moves, start=first)
        ]
        connection.execute(insert(MOVES), rows)


def _new_row(rollout: Rollout) -> dict[str, Any]:
    status = rollout.status
    return _row(rollout) | {
        "rollout_id": status.rollout_id,
        "service": status.service,
        "fingerprint": status.candidate.fingerprint,
        "began_s": status.began_s,
        "plan": text_of(rollout.plan),
        "gates": text_of(rollout.gates),
        "num_writes": rollout.num_writes,
    }


def _row(rollout: Rollout) -> dict[str, Any]:
    """What changes."""
    status = rollout.status
    return {
        "active": None if status.phase.is_over else status.service,
        "status": text_of(status),
        "sums": json.dumps(rollout.sums.to_dict()),
        "judgement": text_of(rollout.judgement),
        "epoch": rollout.cursor.epoch,
        "number": rollout.cursor.number,
    }


def _rollout(row: Any) -> Rollout:
    return Rollout(
        status=status_of(parsed(row.status)),
        plan=plan_of_text(row.plan),
        gates=gates_of_text(row.gates),
        sums=Sums.from_dict(parsed(row.sums)),
        cursor=Cursor(epoch=row.epoch, number=row.number),
        judgement=judgement_of(parsed(row.judgement)),
        num_writes=row.num_writes,
    )


def _command(row: Any) -> Command:
    return Command(verb=Verb(row.verb), who=row.who, why=row.why, at_s=row.at_s, number=row.number)
