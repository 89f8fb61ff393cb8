"""Rules on labels, in order, each on what the one before it left."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from skyfarer.satellite.fetchers.prometheus.config import RelabelConfig
from skyfarer.satellite.fetchers.prometheus.exposition import NAME, Sample

EXPORTED = b"exported_"


class Relabel:
    """Pure. `apply` puts the target's own labels on a sample; what the target itself called so is
    kept as `exported_…`, as Prometheus does it."""

    def __init__(self, rules: Sequence[RelabelConfig]) -> None:
        self._rules = [
            (
                rule.action,
                rule.source.encode(),
                re.compile(rule.regex.encode()),
                rule.target.encode(),
                rule.replacement.encode(),
            )
            for rule in rules
        ]

    def apply(self, sample: Sample, own: Mapping[bytes, bytes]) -> Sample | None:
        """None if a rule drops it. The sample's labels are changed in place."""
        labels = sample.labels
        for name in own:
            if name in labels:
                labels[EXPORTED + name] = labels.pop(name)
        labels.update(own)
        if not self._rules:
            return sample
        labels[NAME] = sample.name
        for action, source, regex, target, replacement in self._rules:
            match = regex.fullmatch(labels.get(source, b""))
            if (action == "keep" and match is None) or (action == "drop" and match is not None):
                return None
            if action == "replace" and match is not None:
                labels[target] = match.expand(replacement)
                if not labels[target]:
                    del labels[target]
        name = labels.pop(NAME, b"")
        return sample._replace(name=name) if name else None
