"""The product's drawn marks. Static text of ours: nothing from the wire is ever put in here."""

from __future__ import annotations

_SHAPES = (
    '<circle cx="12" cy="12" r="3.2" fill="currentColor"/>'
    '<path d="M4.2 16.6C1.9 12.9 2.6 8 6 5.2s8.5-2.6 11.7.6" fill="none" '
    'stroke="currentColor" stroke-width="1.8" stroke-linecap="round" opacity=".55"/>'
    '<path d="M19.8 7.4c2.3 3.7 1.6 8.6-1.8 11.4s-8.5 2.6-11.7-.6" fill="none" '
    'stroke="currentColor" stroke-width="1.8" stroke-linecap="round"/>'
    '<circle cx="18.9" cy="6.2" r="1.7" fill="currentColor"/>'
)

LOGO = f'<svg viewBox="0 0 24 24" width="26" height="26" aria-hidden="true">{_SHAPES}</svg>'

FAVICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" style="color:#3d63dd">'
    f"{_SHAPES}</svg>"
)

THEME = (
    '<svg viewBox="0 0 24 24" width="18" height="18" aria-hidden="true">'
    '<circle cx="12" cy="12" r="8.5" fill="none" stroke="currentColor" stroke-width="1.7"/>'
    '<path d="M12 3.5a8.5 8.5 0 0 1 0 17z" fill="currentColor"/></svg>'
)

PAUSE = (
    '<svg viewBox="0 0 24 24" width="18" height="18" aria-hidden="true">'
    '<path class="going" d="M8.5 5.5v13M15.5 5.5v13" stroke="currentColor" stroke-width="2.4" '
    'stroke-linecap="round"/>'
    '<path class="standing" d="M8 5.4v13.2L18.5 12z" fill="currentColor"/></svg>'
)

KEYS = (
    '<svg viewBox="0 0 24 24" width="18" height="18" aria-hidden="true">'
    '<rect x="2.8" y="6" width="18.4" height="12" rx="2.4" fill="none" stroke="currentColor" '
    'stroke-width="1.7"/><path d="M6.5 10h1M10 10h1M13.5 10h1M17 10h.5M8 14h8" fill="none" '
    'stroke="currentColor" stroke-width="1.7" stroke-linecap="round"/></svg>'
)
