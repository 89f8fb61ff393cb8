"""What every storage promises of dashboards that were saved."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from skyfarer.base.errors import PermanentError
from skyfarer.oap.core import templates
from skyfarer.oap.core.templates import Template

ONE = Template("one", '{"name": "’ü\\u0000"}', 1)


class TemplatesContract:
    def test_nothing_is_saved_at_first(self, storage: Any) -> None:
        assert storage.templates() == []

    def test_what_is_saved_again_keeps_its_place(self, storage: Any) -> None:
        two = Template("'; DROP TABLE ui_template; --", "{}", 2)
        storage.save_template(ONE)
        storage.save_template(two)
        assert storage.templates() == [ONE, two]
        changed = replace(ONE, configuration="[]", updated_ms=3, disabled=True)
        for _ in range(2):
            storage.save_template(changed)
            assert storage.templates() == [changed, two]

    def test_there_is_a_bound_and_what_is_there_can_still_be_changed(self, storage: Any) -> None:
        for number in range(templates.TEMPLATES_MAX):
            storage.save_template(replace(ONE, id=str(number)))
        with pytest.raises(PermanentError, match="1000 saved dashboards already"):
            storage.save_template(ONE)
        storage.save_template(replace(ONE, id="7", disabled=True))
        saved = storage.templates()
        assert len(saved) == templates.TEMPLATES_MAX
        assert saved[7].disabled
