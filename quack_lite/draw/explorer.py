"""Controls over a picture: when a control changes, the picture is drawn again."""

import base64
import html
from collections.abc import Callable

import ipywidgets
from IPython.display import Image


class Explorer(ipywidgets.VBox):
    """Controls, and below them the picture that `draw` makes of their values; a ValueError's sentence in its place.

    above: makes HTML of the values, which stands over the picture.
    Where widgets are not shown (a saved notebook on a web page, a printed one), the picture stands alone, or what
    `still` makes.
    """

    def __init__(
        self,
        controls: dict[str, ipywidgets.Widget],
        draw: Callable[..., Image],
        above: Callable[..., str] | None = None,
        still: Callable[[], Image] | None = None,
    ):
        self._controls, self._draw, self._above, self._still = controls, draw, above, still
        self._shown = ipywidgets.HTML()
        self.image = None  # the picture last drawn
        for control in controls.values():
            control.observe(self._renew, names="value")
        super().__init__([*controls.values(), self._shown])
        self._renew()

    def _renew(self, _=None) -> None:
        values = {name: control.value for name, control in self._controls.items()}
        try:
            self.image = self._draw(**values)
            self._shown.value = (self._above(**values) if self._above else "") + as_html(self.image)
        except ValueError as problem:
            self._shown.value = f"<p>{html.escape(str(problem))}</p>"

    def _repr_mimebundle_(self, **kwargs) -> dict:
        bundle = super()._repr_mimebundle_(**kwargs)
        alone = self._still() if self._still else self.image
        if alone is None:
            return bundle
        return bundle | {"image/png": base64.b64encode(alone.data).decode(), "text/plain": alone.alt}


def as_html(shown: Image) -> str:
    """The picture as an <img> with its description, never wider than the page."""
    data = base64.b64encode(shown.data).decode()
    return f'<img alt="{html.escape(shown.alt)}" style="max-width:100%" src="data:image/png;base64,{data}">'


def field(control: type[ipywidgets.Widget], name: str, value, **settings) -> ipywidgets.Widget:
    """A control with its name in front, which reports a value when it is let go."""
    settings |= {"continuous_update": False} if hasattr(control, "continuous_update") else {}
    wide = {"style": {"description_width": "5em"}, "layout": {"width": "32em", "max_width": "100%"}}
    return control(value=value, description=name, **wide, **settings)
