"""What decides what is told: some of the settings, which workers get as an option of the source."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

from skyfarer.oap.pipeline.analysis.settings import (
    AnalysisSettings,
    KeptSettings,
    NamingSettings,
    SlowSettings,
)


@dataclass(frozen=True)
class Telling:
    naming: NamingSettings = field(default_factory=NamingSettings)
    kept: KeptSettings = field(default_factory=KeptSettings)

    @classmethod
    def by(cls, settings: AnalysisSettings) -> Telling:
        return cls(settings.naming, settings.kept)

    @classmethod
    def read(cls, text: str) -> Telling:
        """Of what `written` gave."""
        told = json.loads(text)
        kept = told["kept"]
        tags, log_tags = (tuple(kept[f"searchable_{name}"]) for name in ("tags", "log_tags"))
        read = KeptSettings(kept["failed_by"], tags, log_tags, SlowSettings(**kept["slow"]))
        return cls(NamingSettings(**told["naming"]), read)

    def written(self) -> str:
        return json.dumps(asdict(self))
