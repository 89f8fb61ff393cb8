from __future__ import annotations

from contracts.templates_contract import TemplatesContract


class TestPostgresTemplates(TemplatesContract):
    pass
