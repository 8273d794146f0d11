"""`SummaryWriter`, which writes what a program logs into the event files that TensorBoard reads."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

from tensorboard.compat import tf
from tensorboard.compat.proto import event_pb2
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from ._convert_np import make_np
from ._embedding import _gfile_join, get_embedding_info, make_mat, make_sprite, make_tsv, write_pbtxt
from ._utils import figure_to_image
from .summary import (
    audio,
    custom_scalars,
    histogram,
    histogram_raw,
    hparams,
    image,
    image_boxes,
    logger,
    mesh,
    pr_curve,
    pr_curve_raw,
    scalar,
    tensor_proto,
    text,
    video,
)

__all__ = ["FileWriter", "SummaryWriter"]


class FileWriter:
    """Writes events into one file of the folder `log_dir`.

    A thread of its own writes them: at the latest every `flush_secs` seconds, and when `max_queue` events wait.
    """

    def __init__(
        self, log_dir: Any, max_queue: int = 10, flush_secs: float = 120, filename_suffix: str = ""
    ) -> None:
        self._arguments = (str(log_dir), max_queue, flush_secs, filename_suffix)
        self._is_closed = False
        self.event_writer = EventFileWriter(*self._arguments)

    def get_logdir(self) -> str:
        """Return the folder of the file."""
        return self.event_writer.get_logdir()

    def add_event(self, event: Event, step: Any = None, walltime: float | None = None) -> None:
        """Writes an event, which happens now unless `walltime` says when (in seconds since 1970)."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary: Any, global_step: Any = None, walltime: float | None = None) -> None:
        """Writes a summary."""
        self.add_event(Event(summary=summary), global_step, walltime)

    def add_graph(self, graph_profile: tuple[Any, Any], walltime: float | None = None) -> None:
        """Writes a graph and its `RunMetadata`."""
        graph, metadata = graph_profile
        self.add_event(Event(graph_def=graph.SerializeToString()), None, walltime)
        run = event_pb2.TaggedRunMetadata(tag="step1", run_metadata=metadata.SerializeToString())
        self.add_event(Event(tagged_run_metadata=run), None, walltime)

    def add_onnx_graph(self, graph: Any, walltime: float | None = None) -> None:
        """Writes the graph of an ONNX file."""
        self.add_event(Event(graph_def=graph.SerializeToString()), None, walltime)

    def flush(self) -> None:
        """Waits until all events are in the file."""
        self.event_writer.flush()

    def close(self) -> None:
        """Writes what is left and closes the file."""
        self._is_closed = True
        self.event_writer.close()

    def reopen(self) -> None:
        """Writes further events, after `close`, into a new file of the folder."""
        if self._is_closed:
            self.event_writer = EventFileWriter(*self._arguments)
            self._is_closed = False


class SummaryWriter:
    """Writes logs of a run for TensorBoard into the folder `log_dir`.

    Without `log_dir` the folder is `runs/DATE_TIME_HOST` with `comment` at its end. `purge_step` tells TensorBoard
    to forget what a run that crashed has logged from this step on. `max_queue` and `flush_secs` say when
    events are written to the disk, and `filename_suffix` ends the names of files.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
    ...     for step in range(3):
    ...         writer.add_scalar("loss", 1 / (step + 1), step)
    """

    def __init__(
        self,
        log_dir: Any = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        self.log_dir = log_dir if log_dir else _default_log_dir(comment)
        self.purge_step = purge_step
        self.max_queue = max_queue
        self.flush_secs = flush_secs
        self.filename_suffix = filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self._get_file_writer()
        self.default_bins = _default_bins()

    def _get_file_writer(self) -> FileWriter:
        """Return the writer of the run, a new one after `close`."""
        if self.all_writers is None or self.file_writer is None:
            self.file_writer = self._new_writer(self.log_dir)
            self.all_writers = {self.file_writer.get_logdir(): self.file_writer}
            if self.purge_step is not None:
                step = self.purge_step
                self.file_writer.add_event(Event(step=step, file_version="brain.Event:2"))
                self.file_writer.add_event(Event(step=step, session_log=SessionLog(status=SessionLog.START)))
                self.purge_step = None
        return self.file_writer

    def _new_writer(self, folder: Any) -> FileWriter:
        return FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)

    def get_logdir(self) -> Any:
        """Return the folder of the run."""
        return self.log_dir

    def add_hparams(
        self,
        hparam_dict: dict[str, Any],
        metric_dict: dict[str, Any],
        hparam_domain_discrete: dict[str, list[Any]] | None = None,
        run_name: str | None = None,
        global_step: Any = None,
    ) -> None:
        """Logs hyperparameters and the metrics that they gave, as a run of their own in a folder below."""
        if not isinstance(hparam_dict, dict) or not isinstance(metric_dict, dict):
            raise TypeError(
                f"hparam_dict and metric_dict are dicts, and not {type(hparam_dict)} and {type(metric_dict)}"
            )
        summaries = hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = os.path.join(self._get_file_writer().get_logdir(), run_name or str(time.time()))
        with SummaryWriter(log_dir=folder) as run:
            for each in summaries:
                run._get_file_writer().add_summary(each, global_step)
            for name, value in metric_dict.items():
                run.add_scalar(name, value, global_step)

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: Any = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """Logs a number."""
        summary = scalar(tag, scalar_value, new_style=new_style, double_precision=double_precision)
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, Any],
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Logs numbers that are drawn into one chart: each is a run of its own in a folder below."""
        walltime = time.time() if walltime is None else walltime
        top = self._get_file_writer().get_logdir()
        assert self.all_writers is not None
        for tag, value in tag_scalar_dict.items():
            folder = f"{top}/{main_tag.replace('/', '_')}_{tag}"
            if folder not in self.all_writers:
                self.all_writers[folder] = self._new_writer(folder)
            self.all_writers[folder].add_summary(scalar(main_tag, value), global_step, walltime)

    def add_tensor(
        self, tag: str, tensor: Any, global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Logs all elements of a tensor."""
        self._get_file_writer().add_summary(tensor_proto(tag, tensor), global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: Any = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Logs the histogram of `values`. `bins` is what `np.histogram` takes, or "tensorflow" for widths that grow
        by a tenth from zero on."""
        if isinstance(bins, str) and bins == "tensorflow":
            bins = self.default_bins
        self._get_file_writer().add_summary(histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(
        self,
        tag: str,
        min: float,
        max: float,
        num: float,
        sum: float,
        sum_squares: float,
        bucket_limits: Sequence[float],
        bucket_counts: Sequence[float],
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Logs a histogram that the caller has computed. `bucket_limits` are the upper ends of the bins."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError(
                f"each bin has one upper end and one count, and there are {len(bucket_limits)} bucket_limits "
                f"and {len(bucket_counts)} bucket_counts"
            )
        summary = histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts)
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Logs a picture: bytes, or numbers from 0 to 1. `dataformats` names its dimensions."""
        summary = image(tag, img_tensor, dataformats=dataformats)
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Logs several pictures as one, side by side."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_image_with_boxes(
        self,
        tag: str,
        img_tensor: Any,
        box_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        rescale: float = 1,
        dataformats: str = "CHW",
        labels: str | Sequence[str] | None = None,
    ) -> None:
        """Logs a picture with boxes [N, (left, top, right, bottom)] and, if there are as many, their labels."""
        labels = [labels] if isinstance(labels, str) else labels
        if labels is not None and len(labels) != box_tensor.shape[0]:
            logger.warning(
                "There are %d labels and %d boxes: the labels are left out", len(labels), box_tensor.shape[0]
            )
            labels = None
        summary = image_boxes(tag, img_tensor, box_tensor, rescale, dataformats, labels)
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def add_figure(
        self,
        tag: str,
        figure: Any,  # a Figure of matplotlib, or a list of them
        global_step: int | None = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """Logs a figure of matplotlib, or several as one picture, and closes them unless told otherwise."""
        dataformats = "NCHW" if isinstance(figure, list) else "CHW"
        self.add_image(tag, figure_to_image(figure, close), global_step, walltime, dataformats)

    def add_video(
        self,
        tag: str,
        vid_tensor: Any,
        global_step: Any = None,
        fps: float = 4,
        walltime: float | None = None,
    ) -> None:
        """Logs films [N, T, C, H, W], side by side, as a GIF. It needs the package moviepy."""
        self._get_file_writer().add_summary(video(tag, vid_tensor, fps), global_step, walltime)

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: Any = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """Logs a sound of one channel, with amplitudes from -1 to 1."""
        summary = audio(tag, snd_tensor, sample_rate=sample_rate)
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def add_text(
        self, tag: str, text_string: str, global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Logs a text, which TensorBoard shows as Markdown."""
        self._get_file_writer().add_summary(text(tag, text_string), global_step, walltime)

    def add_onnx_graph(self, prototxt: str) -> None:
        """Logs the graph of the ONNX file `prototxt`. It needs the package onnx."""
        from ._onnx_graph import load_onnx_graph

        self._get_file_writer().add_onnx_graph(load_onnx_graph(prototxt))

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """Logs the graph of `model(*input_to_model)` as `torch.export` records it; `verbose` prints it as well."""
        from ._pytorch_graph import graph

        profile = graph(model, input_to_model, verbose, use_strict_trace)
        self._get_file_writer().add_graph(profile)

    @staticmethod
    def _encode(rawstr: str) -> str:
        """Return a tag as the name of a folder."""
        return "".join(f"%{ord(each):02x}" if each in "%/\\" else each for each in rawstr)

    def add_embedding(
        self,
        mat: Any,
        metadata: Sequence[Any] | None = None,
        label_img: Any = None,
        global_step: Any = None,
        tag: str = "default",
        metadata_header: Sequence[Any] | None = None,
    ) -> None:
        """Logs points [N, D] for the projector, with labels (rows of columns that `metadata_header` names, if given)
        and pictures [N, C, H, W]."""
        points = make_np(mat)
        if points.ndim != 2:
            raise AssertionError(f"mat is [points, dimensions], and its shape is {points.shape}")
        for name, each in (("metadata", metadata), ("label_img", label_img)):
            if each is not None and len(each) != len(points):
                raise AssertionError(f"each point has one entry in {name}: {len(each)} and not {len(points)}")
        step = 0 if global_step is None else global_step
        subdir = f"{str(step).zfill(5)}/{self._encode(tag)}"
        folder = self._embedding_folder(subdir)
        if metadata is not None:
            make_tsv(metadata, folder, metadata_header=metadata_header)
        if label_img is not None:
            make_sprite(label_img, folder)
        make_mat(points, folder)
        self._add_to_projector(get_embedding_info(metadata, label_img, subdir, step, tag))

    def _embedding_folder(self, subdir: str) -> str:
        folder = _gfile_join(self._get_file_writer().get_logdir(), subdir)
        if not tf.io.gfile.exists(folder):
            tf.io.gfile.makedirs(folder)
        elif tf.io.gfile.isdir(folder):
            print("warning: Embedding dir exists, did you set global_step for add_embedding()?")
        else:
            raise NotADirectoryError(f"{folder} is a file, and the embedding needs a folder of this name")
        return folder

    def _add_to_projector(self, embedding: Any) -> None:
        """Adds an embedding to the projector's configuration, which is one file for the run."""
        from google.protobuf import text_format

        if not hasattr(self, "_projector_config"):
            self._projector_config = ProjectorConfig()
        self._projector_config.embeddings.extend([embedding])
        write_pbtxt(self._get_file_writer().get_logdir(), text_format.MessageToString(self._projector_config))

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: Any = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Logs the curve of precision and recall of `predictions` (probabilities) of `labels` (0 or 1)."""
        summary = pr_curve(tag, make_np(labels), make_np(predictions), num_thresholds, weights)
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Any,
        false_positive_counts: Any,
        true_negative_counts: Any,
        false_negative_counts: Any,
        precision: Any,
        recall: Any,
        global_step: Any = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Logs a curve of precision and recall that the caller has computed, by threshold."""
        counts = true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts
        found: Any = (
            each if isinstance(each, list) else make_np(each) for each in (*counts, precision, recall)
        )
        tp, fp, tn, fn, precision, recall = found
        summary = pr_curve_raw(tag, tp, fp, tn, fn, precision, recall, num_thresholds, weights)
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def add_custom_scalars_multilinechart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Draws several scalars into one chart."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Draws a scalar in its margin: `tags` are the value, the lower and the upper end."""
        if len(tags) != 3:
            raise AssertionError(
                f"a margin chart takes three tags (value, lower, upper), and got {len(tags)}"
            )
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_custom_scalars(self, layout: Mapping[str, Mapping[str, Sequence[Any]]]) -> None:
        """Says which scalars are drawn into one chart: `{category: {title: ["Multiline", tags]}}`."""
        self._get_file_writer().add_summary(custom_scalars(layout))

    def add_mesh(
        self,
        tag: str,
        vertices: Any,
        colors: Any = None,
        faces: Any = None,
        config_dict: Mapping[str, Any] | None = None,
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Logs points [B, N, 3] with colours [B, N, 3] (0 to 255) and triangles [B, F, 3] (indices of points).

        `config_dict` is for the renderer, three.js."""
        summary = mesh(tag, vertices, colors, faces, config_dict)
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def flush(self) -> None:
        """Waits until all events are in the files."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Writes what is left and closes the files. What is logged afterwards opens new ones."""
        for writer in (self.all_writers or {}).values():
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        self.close()


def _default_log_dir(comment: str) -> str:
    import socket
    from datetime import datetime

    start = datetime.now().strftime("%b%d_%H-%M-%S")
    return os.path.join("runs", f"{start}_{socket.gethostname()}{comment}")


def _default_bins() -> list[float]:
    """Limits from -1e20 to 1e20 whose absolute values grow by a tenth, and zero."""
    positive = []
    limit = 1e-12
    while limit < 1e20:
        positive.append(limit)
        limit *= 1.1
    return [*(-each for each in reversed(positive)), 0.0, *positive]
