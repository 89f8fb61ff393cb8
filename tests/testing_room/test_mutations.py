"""The hostile messages that tests send: which they are, and that a seed makes them again."""

from __future__ import annotations

from itertools import islice
from random import Random

import pytest

from skyfarer.testing.mutations import Mutator, nested, places
from skyfarer.testing.specimens import MESSAGES, Specimens
from skyfarer.wire.messages import v2_trace
from skyfarer.wire.rpc import Kind
from skyfarer.wire.split import sound_at_top, walk

NOON = 1_794_744_000_000


def mutator(seed: int) -> Mutator:
    random = Random(seed)
    made = Specimens(random, NOON)
    return Mutator(random, [made.of(kind) for kind in MESSAGES])


def messages(seed: int, count: int) -> list[tuple[int, bytes]]:
    one = mutator(seed)
    return list(islice(iter(one.message, None), count))


def test_a_seed_makes_the_same_messages_again_and_another_one_others() -> None:
    assert messages(1, 500) == messages(1, 500) != messages(2, 500)


def test_every_kind_is_mutated_into_malformed_and_sound_at_top_messages() -> None:
    made = messages(3, 10_000)
    for sound in (True, False):
        assert {kind for kind, payload in made if sound_at_top(payload) is sound} == set(MESSAGES)


@pytest.mark.parametrize("kind", MESSAGES)
def test_a_field_put_back_in_its_place_makes_the_specimen_again(kind: Kind) -> None:
    specimen = Specimens(Random(4), NOON).of(kind)
    found = places(specimen.payload, specimen.descriptor)
    assert found
    assert {one.rebuilt(one.whole) for one in found} == {specimen.payload}


def test_places_lie_on_every_level_also_of_a_message_in_bytes() -> None:
    specimen = Specimens(Random(5), NOON).of(Kind.V2_SEGMENT)
    names = {one.field.full_name for one in places(specimen.payload, specimen.descriptor)}
    tag = v2_trace.SpanObjectV2.DESCRIPTOR.fields_by_name["tags"]
    assert tag.full_name in names


def test_nested_messages_are_as_deep_as_asked() -> None:
    content, depth = nested((b"\x1a",), 1_000), 0
    while content:
        ((tag, start, end),) = walk(content)
        assert tag == 0x1A
        content, depth = content[start:end], depth + 1
    assert depth == 1_000
