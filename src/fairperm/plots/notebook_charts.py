"""Charts of Altair that a notebook shows without a network: as pictures.

Altair's own form loads scripts from the network. Whoever enables one of its renderers gets it, with
tooltips and sliders.
"""

from __future__ import annotations

from typing import Any

import altair as alt

from fairperm._utils.optional import optional

__all__ = ["LayerPicture", "PanelPicture"]


class _Picture(alt.TopLevelMixin):
    """A chart that a notebook shows as a picture, and that names what saving it as one needs."""

    def _repr_mimebundle_(self, *args: Any, **options: Any) -> Any:
        return _draw(self) or super()._repr_mimebundle_(*args, **options)

    def save(self, *args: Any, **options: Any) -> None:
        try:
            super().save(*args, **options)
        except ValueError:
            with optional("A picture"):
                import vl_convert  # noqa: F401
            raise


class LayerPicture(_Picture, alt.LayerChart):
    """Layers, one above the other."""


class PanelPicture(_Picture, alt.VConcatChart):
    """Panels, one below the other."""


def _draw(chart: _Picture) -> dict[str, str]:
    """Return the picture for a notebook; nothing if the user chose a renderer of Altair."""
    if alt.renderers.active != "default":
        return {}
    try:
        import vl_convert
    except ModuleNotFoundError:
        return {}
    spec = chart.to_dict()
    version = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    picture = vl_convert.vegalite_to_svg(spec, vl_version=version)
    return {"image/svg+xml": picture, "text/plain": spec["description"]}
