"""Charts of Altair that a notebook shows without a network: as pictures.

Altair's own form loads scripts from the network. Whoever enables one of its renderers gets it, with
tooltips and sliders.
"""

from __future__ import annotations

from typing import Any

import altair as alt

__all__ = ["LayerPicture", "PanelPicture"]


class LayerPicture(alt.LayerChart):
    """Layers that a notebook shows as a picture."""

    def _repr_mimebundle_(self, *args: Any, **options: Any) -> Any:
        return _draw(self) or super()._repr_mimebundle_(*args, **options)


class PanelPicture(alt.VConcatChart):
    """Panels, one below the other, that a notebook shows as a picture."""

    def _repr_mimebundle_(self, *args: Any, **options: Any) -> Any:
        return _draw(self) or super()._repr_mimebundle_(*args, **options)


def _draw(chart: alt.LayerChart | alt.VConcatChart) -> dict[str, str]:
    """Return the picture for a notebook; nothing if the user chose a renderer of Altair."""
    if alt.renderers.active != "default":
        return {}
    import vl_convert

    spec = chart.to_dict()
    version = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    picture = vl_convert.vegalite_to_svg(spec, vl_version=version)
    return {"image/svg+xml": picture, "text/plain": spec["description"]}
