"""torchvision's models without its compiled operators: declares their names, which is all that the
models ask for, so that a wheel made for other processors can be imported beside a CPU's torch."""
import torch

_OPERATORS = {
    "nms": "Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    **{name: "Tensor input, Tensor rois) -> Tensor" for name in (
        "roi_align", "_roi_align_backward", "roi_pool", "_roi_pool_backward", "ps_roi_align",
        "_ps_roi_align_backward", "ps_roi_pool", "_ps_roi_pool_backward", "deform_conv2d",
        "_deform_conv2d_backward")},
}
_library = torch.library.Library("torchvision", "DEF")
for _name, _rest in _OPERATORS.items():
    _library.define(f"{_name}({_rest}")

import torchvision.models as models  # noqa: E402  (after the declarations)

ATTENTION = ("maxvit", "swin", "vit")
AUXILIARY = ("googlenet", "inception_v3")  # nets that may have more outputs, for training


def names():
    """Those without attention."""
    return [name for name in models.list_models(module=models) if not name.startswith(ATTENTION)]


def make(name, auxiliary=False):
    """With random weights."""
    options = {"aux_logits": auxiliary, "init_weights": False} if name in AUXILIARY else {}
    return models.get_model(name, weights=None, **options)
