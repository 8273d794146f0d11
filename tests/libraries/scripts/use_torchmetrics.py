"""torchmetrics: classification, regression, text, image and collections of metrics."""

import torch
import torchmetrics
import torchmetrics.functional.clustering
from checks import check, main
from torchmetrics import functional as F
from torchmetrics.classification import (
    BinaryAUROC,
    MulticlassAccuracy,
    MulticlassCalibrationError,
    MulticlassConfusionMatrix,
    MulticlassF1Score,
    MultilabelAveragePrecision,
)


@check
def classification():
    logits, target = torch.randn(40, 5).softmax(1), torch.randint(0, 5, (40,))
    metrics = torchmetrics.MetricCollection(
        {
            "accuracy": MulticlassAccuracy(5),
            "f1": MulticlassF1Score(5, average="macro"),
            "confusion": MulticlassConfusionMatrix(5),
            "calibration": MulticlassCalibrationError(5),
        }
    )
    steps = [metrics(logits[i : i + 10], target[i : i + 10]) for i in range(0, 40, 10)]
    return {**metrics.compute(), "first batch": steps[0], "last batch": steps[-1]}


@check
def binary():
    scores, target = torch.rand(50), torch.randint(0, 2, (50,))
    auroc = BinaryAUROC()
    auroc.update(scores[:25], target[:25])
    auroc.update(scores[25:], target[25:])
    curve = F.precision_recall_curve(scores, target, task="binary")
    return {
        "auroc": auroc.compute(),
        "precision": curve[0],
        "recall": curve[1],
        "thresholds": curve[2],
        "average": F.average_precision(scores, target, task="binary"),
        "matthews": F.matthews_corrcoef(scores, target, task="binary"),
        "hinge": F.hinge_loss(scores, target, task="binary"),
    }


@check
def multilabel():
    metric = MultilabelAveragePrecision(num_labels=3, average=None)
    metric.update(torch.rand(30, 3), torch.randint(0, 2, (30, 3)))
    state = {name: value for name, value in metric.metric_state.items() if isinstance(value, torch.Tensor)}
    return {"value": metric.compute(), "state": state}


@check
def regression():
    x, y = torch.randn(60), torch.randn(60)
    y = y + x
    names = [
        "mean_squared_error", "mean_absolute_error", "r2_score", "pearson_corrcoef", "spearman_corrcoef",
        "explained_variance", "cosine_similarity", "concordance_corrcoef", "kendall_rank_corrcoef",
    ]  # fmt: skip
    values = {}
    for name in names:
        a, b = (x[None], y[None]) if name == "cosine_similarity" else (x, y)
        values[name] = getattr(F, name)(a, b)
    return values


@check
def images():
    x = torch.rand(2, 3, 48, 48)
    y = (x + 0.1 * torch.randn_like(x)).clamp(0, 1)
    return {
        "psnr": F.image.peak_signal_noise_ratio(x, y, data_range=1.0),
        "ssim": F.image.structural_similarity_index_measure(x, y, data_range=1.0),
        "variation": F.image.total_variation(x),
        "uqi": F.image.universal_image_quality_index(x, y),
        "sam": F.image.spectral_angle_mapper(x, y),
    }


@check
def text():
    predicted, target = ["the cat is on the mat", "a dog"], [["there is a cat on the mat"], ["the dog"]]
    return {
        "bleu": F.text.bleu_score(predicted, target),
        "chrf": F.text.chrf_score(predicted, target),
        "wer": F.text.word_error_rate(predicted, [t[0] for t in target]),
        "cer": F.text.char_error_rate(predicted, [t[0] for t in target]),
        "perplexity": F.text.perplexity(torch.randn(2, 8, 5), torch.randint(0, 5, (2, 8))),
    }


@check
def clustering():
    return {
        "rand": F.clustering.rand_score(torch.randint(0, 3, (20,)), torch.randint(0, 3, (20,))),
        "mutual": F.clustering.mutual_info_score(torch.randint(0, 3, (20,)), torch.randint(0, 3, (20,))),
    }


@check
def retrieval():
    index = torch.tensor([0, 0, 0, 1, 1, 1, 1])
    scores, target = torch.rand(7), torch.tensor([False, True, False, True, False, True, False])
    ndcg = torchmetrics.retrieval.RetrievalNormalizedDCG()
    return {
        "map": torchmetrics.retrieval.RetrievalMAP()(scores, target, indexes=index),
        "ndcg": ndcg(scores, target, indexes=index),
    }


@check
def states():
    mean = torchmetrics.MeanMetric()
    mean.update(torch.tensor([1.0, 2.0, 4.0]), weight=torch.tensor([1.0, 1.0, 2.0]))
    running = torchmetrics.wrappers.Running(torchmetrics.SumMetric(), window=2)
    for value in range(4):
        running.update(float(value))
    tracker = torchmetrics.wrappers.MetricTracker(torchmetrics.MeanSquaredError(), maximize=False)
    for step in range(3):
        tracker.increment()
        tracker.update(torch.randn(5) / (step + 1), torch.zeros(5))
    best, which = tracker.best_metric(return_step=True)
    copy = torchmetrics.MeanMetric()
    copy.persistent(True)
    mean.persistent(True)
    copy.load_state_dict(mean.state_dict())
    return {
        "mean": mean.compute(),
        "state": dict(mean.state_dict()),
        "running": running.compute(),
        "all": tracker.compute_all(),
        "best": best,
        "which": which,
        "sum": (mean + 1).compute(),
        "hash": hash(mean) == hash(copy),
        "repr": repr(tracker),
    }


@check
def audio():
    x = torch.randn(2, 400)
    y = x + 0.3 * torch.randn(2, 400)
    return {
        "snr": F.audio.signal_noise_ratio(y, x),
        "si_sdr": F.audio.scale_invariant_signal_distortion_ratio(y, x),
        "sdr": F.audio.signal_distortion_ratio(y, x, filter_length=16),
        "pit": F.audio.permutation_invariant_training(
            torch.randn(1, 2, 40), torch.randn(1, 2, 40), F.audio.scale_invariant_signal_noise_ratio
        )[0],
    }


if __name__ == "__main__":
    main("torchmetrics")
