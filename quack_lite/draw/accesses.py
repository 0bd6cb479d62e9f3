"""The access map of a request on the Model: which lane touches which byte."""

from typing import TYPE_CHECKING

from IPython.display import Image

from quack_lite.counted import counted
from quack_lite.draw.banks import bank_figure
from quack_lite.draw.picture import caption, picture
from quack_lite.draw.sectors import sector_figure
from quack_lite.draw.touched import touched
from quack_lite.simt.traffic import WORD

if TYPE_CHECKING:
    from quack_lite.simt import Request


def access_map(request: "Request") -> Image:
    """Draws one warp's request, as Run.requests() gives them: in global memory by sector, in shared memory by bank.

    Sectors have a line and a colour each, what nobody asked for is hatched; in shared memory a column is a bank.
    Two numbers: the first and the last of several lanes that touch the same.
    """
    where = request.lanes, request.address, request.width
    in_memory = request.space == "global"
    figure, plot = sector_figure(*touched(*where)) if in_memory else bank_figure(*touched(*where, cell=WORD))
    caption(plot, f"{request.verb}, warp {request.warp} of CTA {request.cta}\n{cost(request)}")
    line = f"line {request.line.number}: {request.line.text.strip()}"
    return picture(figure, f"{request.verb} of warp {request.warp} of CTA {request.cta} in {line}; {cost(request)}.")


def cost(request: "Request") -> str:
    """What the request costs, in words."""
    if request.space == "global":
        used = f"{counted(request.bytes_asked, 'bytes')} asked for, {request.bytes_moved} moved"
        return f"{counted(request.sectors, 'sectors')}: {used}"
    return f"{counted(request.wavefronts, 'wavefronts')} for {counted(request.bytes_asked, 'bytes')}"
