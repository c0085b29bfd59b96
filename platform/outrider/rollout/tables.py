"""The tables of rollouts. What is read as a whole is one JSON text."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Table,
    Text,
)

metadata = MetaData()

ROLLOUTS = Table(
    "outrider_rollouts",
    metadata,
    Column("rollout_id", String(64), primary_key=True),
    Column("service", String(500), nullable=False, index=True),
    # The service while the rollout is active, else NULL: unique, so that the database itself
    # refuses a second active one, whoever asks first.
    Column("active", String(500), unique=True),
    Column("fingerprint", String(128), nullable=False),
    Column("began_s", Double, nullable=False),  # seconds since 1970
    Column("plan", Text, nullable=False),
    Column("gates", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("sums", Text, nullable=False),
    Column("judgement", Text, nullable=False),
    Column("epoch", String(128), nullable=False),  # of the cursor
    Column("number", BigInteger, nullable=False),  # of the cursor
    Column("num_writes", Integer, nullable=False),  # guards each write: one writer at a time
)
MOVES = Table(
    "outrider_moves",
    metadata,
    Column("rollout_id", ForeignKey(ROLLOUTS.c.rollout_id), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),  # from 1, in its rollout
    Column("move", Text, nullable=False),
)
COMMANDS = Table(
    "outrider_commands",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("rollout_id", ForeignKey(ROLLOUTS.c.rollout_id), nullable=False, index=True),
    Column("verb", String(20), nullable=False),
    Column("who", String(200), nullable=False),
    Column("why", Text, nullable=False),
    Column("at_s", Double, nullable=False),  # seconds since 1970
    Column("is_taken", Boolean, nullable=False),
)
NOTES = Table(  # what was done once and must not be done again: a run's id, an alias given
    "outrider_notes",
    metadata,
    Column("rollout_id", ForeignKey(ROLLOUTS.c.rollout_id), primary_key=True),
    Column("name", String(100), primary_key=True),
    Column("text", Text, nullable=False),
)
LEASES = Table(
    "outrider_leases",
    metadata,
    Column("service", String(500), primary_key=True),
    Column("owner", Text, nullable=False),
    Column("expires_s", Double, nullable=False),  # seconds since 1970
)
