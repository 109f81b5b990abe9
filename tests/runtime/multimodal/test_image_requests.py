"""Requests with images: broken ones, bombs, order, base64, what answers and cards say."""

from __future__ import annotations

import base64
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from safetensors.torch import load_file, save_file

from headway.errors import ArtifactError, RequestError
from headway.runtime.multimodal import image_decoding
from headway.runtime.selfcheck.golden_requests import golden_requests
from headway.runtime.selfcheck.media_samples import SAMPLES
from headway.runtime.tasks import media
from headway.wire.embeddings import EmbeddingsRequest, Media, Text
from tests.runtime.multimodal.multimodal_models import MultimodalModels, ask, load, vectors
from tests.runtime.multimodal.pictures import encoded, picture, png, png_of_zeros

IMAGE = png(50, 40)


def test_bad_images_fail_alone(models: MultimodalModels) -> None:
    model = models.load("clip")
    bomb = png_of_zeros(20_000, 20_000)
    assert len(bomb) < 100_000
    bad = {
        b"not an image": "input 1 is no PNG, JPEG or WebP image",
        IMAGE[: len(IMAGE) // 2]: "input 2 is a broken image: its pixels cannot be decoded",
        IMAGE[:60] + b"\0" * 200 + IMAGE[260:]: "input 3 is a broken image",
        bomb: "input 4 is an image of more than 67108864 pixels",
        png_of_zeros(9_000, 9_000): "input 5 is an image of 9000 x 9000 pixels, the limit is 67108864 pixels",
        png_of_zeros(3_000, 10): "input 6 is an image of 3000 x 10 pixels: one side is more than 200 times the other",
        encoded(picture(30, 30), "GIF"): "input 7 is no PNG, JPEG or WebP image",
        encoded(picture(30, 30), "TIFF"): "input 8 is no PNG, JPEG or WebP image",
        encoded(picture(30, 30), "JPEG")[:300]: "input 9 is a broken image",
    }  # fmt: skip
    body = ask(model, Media("image", IMAGE), *(Media("image", data) for data in bad), Text("a text"), Media("audio", b"RIFF"), Media("image", IMAGE))
    entries = body["data"]
    assert [entry["index"] for entry in entries] == list(range(13))
    for entry, message in zip(entries[1:10], bad.values(), strict=True):
        assert entry["error"] == "invalid_input"
        assert entry["message"].startswith(message)
    assert entries[11]["message"] == "input 11 is audio, this model reads text and image"
    good = [entries[0], entries[10], entries[12]]
    assert all("error" not in entry for entry in good)
    assert entries[0]["embedding"] == entries[12]["embedding"]
    assert body["usage"]["prompt_tokens"] == sum(entry["input"]["tokens"] for entry in good)


def test_a_single_broken_image_is_the_failure_of_the_call(models: MultimodalModels) -> None:
    with pytest.raises(RequestError, match="the input is no PNG, JPEG or WebP image") as refused:
        ask(models.load("clip"), Media("image", b"???"), single=True)
    assert refused.value.reason == "invalid_input"


def test_equal_images_are_equal_rows_and_others_are_not(models: MultimodalModels) -> None:
    plan = models.load("siglip").planners["embeddings"](EmbeddingsRequest((Media("image", IMAGE), Media("image", IMAGE), Media("image", png(50, 40, seed=1)))))
    first, second, third = next(plan)
    assert first == second != third
    assert first.cost == 16  # patches of a tower without a token of its own
    assert first.payload.dtype == np.uint8


@pytest.mark.parametrize("kind", ["clip", "siglip"])
def test_base64_is_the_same_numbers(models: MultimodalModels, kind: str) -> None:
    inputs = (Media("image", IMAGE), Text("a text"))
    plain, coded = (ask(models.load(kind), *inputs, base64=coded)["data"] for coded in (False, True))
    for one, other in zip(plain, coded, strict=True):
        assert np.frombuffer(base64.b64decode(other["embedding"]), "<f4").tolist() == np.float32(one["embedding"]).tolist()


def test_what_answers_and_cards_say(models: MultimodalModels) -> None:
    clip, siglip = models.load("clip"), models.load("siglip")
    for model, width, cost, tokens in ((clip, 24, 17, 77), (siglip, 32, 16, 64)):
        facts = model.facts
        assert facts.modalities == ("text", "image")
        assert facts.embedding is not None
        assert (facts.embedding.modalities, facts.embedding.dimensions, facts.embedding.normalized) == (("text", "image"), (width,), True)
        assert facts.limits == {
            "max_input_tokens": tokens, "max_inputs": 2048, "max_image_inputs": 2048, "image_max_bytes": 16 << 20,
            "image_source_max_pixels": 64 << 20, "image_max_pixels": 1024,
        }  # fmt: skip
        body = ask(model, Media("image", IMAGE))
        assert body["data"][0]["input"] == {"tokens": cost, "processed_tokens": cost, "truncated": False}
        assert body["meta"]["representation"] == {"layer": 2, "dimension": width, "normalized": True, "modality": "image"}
        assert ask(model, Text("a text"))["meta"]["representation"]["modality"] == "text"
        assert ask(model, Text("a text"), dimensions=width)["data"] == ask(model, Text("a text"))["data"]
        with pytest.raises(RequestError, match=f"dimensions must be one of {width}"):
            ask(model, Media("image", IMAGE), dimensions=8)


def test_long_texts_are_refused_or_cut(models: MultimodalModels) -> None:
    for kind, limit in (("clip", 77), ("siglip", 64)):
        model = models.load(kind)
        long = Text("Berlin " * 300)
        assert ask(model, long)["data"][0]["error"] == "max_length_exceeded"
        cut = ask(model, long, overflow="truncate")["data"][0]
        assert (cut["input"]["processed_tokens"], cut["input"]["truncated"]) == (limit, True)


def test_pictures_of_one_request_are_bounded(models: MultimodalModels, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(media, "MAX_PREPARED_BYTES", 3 * 32 * 32 * 2)
    model = models.load("clip")
    assert len(ask(model, Media("image", IMAGE), Media("image", IMAGE), Text("a"), Text("b"))["data"]) == 4
    monkeypatch.setattr(image_decoding.Image, "open", lambda *_, **__: pytest.fail("nothing is read"))
    with pytest.raises(RequestError, match="at most 2 inputs of one request may be of the kind image, found 3"):
        ask(model, *(Media("image", IMAGE),) * 3)


def test_pixels_of_one_request_are_bounded(models: MultimodalModels, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_decoding, "MAX_REQUEST_PIXELS", 5_000)
    large, small = Media("image", IMAGE), Media("image", png(10, 20))
    for _ in range(2):  # each request has its own
        data = ask(models.load("clip"), large, large, large, small, Text("a text"))["data"]
        assert [entry.get("error") for entry in data] == [None, None, "invalid_input", None, None]
        assert data[2]["message"] == "input 2 has 2000 pixels, more than is left of the 5000 that the images of one request may have"


def test_a_webp_that_announces_a_huge_canvas_is_refused_by_its_header(models: MultimodalModels) -> None:
    frame = encoded(picture(8, 8), "WEBP", lossless=True)[12:]
    side = (16_383).to_bytes(3, "little")
    body = b"WEBP" + b"VP8X" + (10).to_bytes(4, "little") + bytes(4) + side + side + frame
    data = b"RIFF" + len(body).to_bytes(4, "little") + body
    entry = ask(models.load("clip"), Media("image", data))["data"][0]
    assert entry["error"] == "invalid_input"


def test_orientation_notes_are_not_applied(models: MultimodalModels) -> None:
    """As the image processors of transformers read a file."""
    image = picture(50, 40)
    notes = image.getexif()
    notes[0x0112] = 6
    turned = encoded(image, "PNG", exif=notes)
    model = models.load("clip")
    assert turned != IMAGE
    assert (vectors(ask(model, Media("image", turned))) == vectors(ask(model, Media("image", IMAGE)))).all()


@pytest.mark.parametrize(
    ("change", "reason"),
    [("no preprocessor", "missing_file"), ("a layer too many", "missing_tensor"), ("a layer too few", "unexpected_tensor"),
     ("other shapes", "tensor_shape"), ("a smaller vocabulary", "tensor_shape"), ("no space in common", "invalid_package")],
)  # fmt: skip
def test_damaged_packages_are_refused(models: MultimodalModels, tmp_path: Path, change: str, reason: str) -> None:
    folder = tmp_path / "package"
    shutil.copytree(models.folder("siglip"), folder)
    config = json.loads((folder / "config.json").read_text())
    if change == "no preprocessor":
        (folder / "preprocessor_config.json").unlink()
    elif change.startswith("a layer"):
        config["vision_config"]["num_hidden_layers"] += 1 if "many" in change else -1
    elif change == "other shapes":
        config["vision_config"]["intermediate_size"] = 64
    elif change == "no space in common":
        config["text_config"]["projection_size"] = 16
        weights = load_file(folder / "model.safetensors")
        heads = {f"text_model.head.{part}": weights[f"text_model.head.{part}"][:16].clone() for part in ("weight", "bias")}
        save_file(weights | heads, folder / "model.safetensors", metadata={"format": "pt"})
    else:
        config["text_config"]["vocab_size"] -= 1
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ArtifactError) as refused:
        load(folder)
    assert refused.value.reason == reason


def test_the_self_check_looks_and_listens(models: MultimodalModels) -> None:
    for variant, names in (("clip", ["embeddings", "embeddings/image"]), ("omni-nano", ["embeddings", "embeddings/image", "embeddings/audio"])):
        model = models.load(variant)
        requests = golden_requests(model.facts, ["embeddings"])
        assert [each.name for each in requests] == names
        for each in requests:
            assert all("embedding" in entry for entry in ask(model, *each.request.inputs)["data"])
    with Image.open(io.BytesIO(SAMPLES["image"].data)) as image:
        assert (image.size, image.mode) == ((48, 40), "RGB")
        assert image.getpixel((9, 17)) == (45, 102, 255)
