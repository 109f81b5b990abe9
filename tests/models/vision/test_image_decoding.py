"""Files of many kinds, upright and on white; files that are refused before or while they are decoded."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest
from PIL import Image

from headway.models.vision.image_decoding import MAX_PIXELS, PixelBudget, UnreadableImage, decode_image
from tests.models.vision.tiny_vision import encoded, picture

IMAGE = picture(20, 10)


def png_of_zeros(width: int, height: int) -> bytes:
    """Grey; a few kB whatever its size."""
    def part(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", zlib.compress(bytes(1000))) + part(b"IEND", b"")


def decode(data: bytes) -> Image.Image:
    return decode_image(data, PixelBudget(2 * MAX_PIXELS))


def _animated(form: str) -> bytes:
    return encoded(IMAGE, form, save_all=True, append_images=[picture(20, 10, 3)])


@pytest.mark.parametrize("form", ["PNG", "WEBP", "GIF", "JPEG"])
def test_each_format(form: str) -> None:
    found = decode(encoded(IMAGE, form, **({"lossless": True} if form == "WEBP" else {})))
    assert (found.mode, found.size) == ("RGB", (20, 10))
    assert np.abs(np.asarray(found).astype(int) - np.asarray(IMAGE)).mean() < (1 if form in ("PNG", "WEBP") else 40)


def test_pictures_behind_the_first_of_a_jpeg_are_not_read() -> None:
    found = decode(encoded(IMAGE, "MPO", save_all=True, append_images=[picture(5, 5)]))
    assert found.size == (20, 10)


def test_a_jpeg_of_very_many_scans_is_refused() -> None:
    data = encoded(IMAGE, "JPEG", progressive=True)
    assert decode(data).size == (20, 10)
    scan = data[data.rfind(b"\xff\xda") : -2]
    with pytest.raises(UnreadableImage, match="scans"):
        decode(data[:-2] + scan * 40 + data[-2:])


def test_one_pixel() -> None:
    assert decode(encoded(Image.new("RGB", (1, 1), (9, 8, 7)))).getpixel((0, 0)) == (9, 8, 7)


def test_orientation_of_the_camera_is_applied() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    found = decode(encoded(IMAGE, "PNG", exif=exif))
    assert np.array_equal(np.asarray(found), np.asarray(IMAGE.transpose(Image.Transpose.ROTATE_270)))


def test_grey_of_16_bits_keeps_its_shades() -> None:
    grey = np.arange(200, dtype=np.uint16).reshape(10, 20) * 327
    found = np.asarray(decode(encoded(Image.fromarray(grey))))[:, :, 0]
    assert np.abs(found - grey / 257).max() <= 1


def test_cmyk_becomes_rgb() -> None:
    found = decode(encoded(Image.new("CMYK", (4, 4), (0, 255, 255, 0)), "JPEG", quality=95)).getpixel((1, 1))
    assert isinstance(found, tuple)
    assert found[0] > 230
    assert max(found[1:]) < 40


def test_transparency_is_white() -> None:
    palette = Image.new("P", (4, 4), 1)
    palette.putpalette([255, 0, 0, 0, 0, 255])
    assert decode(encoded(palette, transparency=1)).getpixel((0, 0)) == (255, 255, 255)
    assert decode(encoded(Image.new("RGBA", (2, 2), (255, 0, 0, 0)))).getpixel((0, 0)) == (255, 255, 255)
    assert decode(encoded(Image.new("LA", (2, 2), (0, 0)))).getpixel((0, 0)) == (255, 255, 255)


REFUSED: tuple[tuple[Callable[[], bytes], str], ...] = (
    (lambda: b"", "is no PNG"),
    (lambda: b"<svg xmlns='http://www.w3.org/2000/svg'/>", "is no PNG"),
    (lambda: encoded(IMAGE, "TIFF"), "is no PNG"),
    (lambda: encoded(IMAGE, "BMP"), "is no PNG"),
    (lambda: encoded(IMAGE)[:100], "is a broken image"),
    (lambda: encoded(IMAGE, "JPEG")[:300], "is a broken image"),
    (lambda: png_of_zeros(50_000, 50_000), "pixels"),
    (lambda: png_of_zeros(9_000, 9_000), "9000 x 9000 pixels"),
    (lambda: png_of_zeros(8_000, 8_000), "is a broken image"),  # has far fewer pixels than it announces
    (lambda: _animated("GIF"), "several frames"),
    (lambda: _animated("PNG"), "several frames"),
    (lambda: _animated("WEBP"), "several frames"),
)


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_files_that_are_refused(number: int) -> None:
    make, message = REFUSED[number]
    with pytest.raises(UnreadableImage, match=message):
        decode(make())


def test_a_text_chunk_that_unpacks_to_much_is_refused() -> None:
    from PIL.PngImagePlugin import PngInfo

    info = PngInfo()
    info.add_text("a", "x" * (70 << 20), zip=True)
    with pytest.raises(UnreadableImage):
        decode(encoded(IMAGE, pnginfo=info))


def test_the_pixels_of_a_request_are_bounded() -> None:
    budget = PixelBudget(500)
    for _ in range(2):
        decode_image(encoded(IMAGE), budget)
    with pytest.raises(UnreadableImage, match="more than is left of the 500"):
        decode_image(encoded(IMAGE), budget)
    assert decode_image(encoded(picture(10, 10)), budget).size == (10, 10)


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "GIF"])
def test_damaged_files_are_read_or_refused(form: str) -> None:
    """Nothing else is raised, whatever the decoders say."""
    whole, random = encoded(IMAGE, form), np.random.default_rng(1)
    for _ in range(60):
        data = bytearray(whole[: random.integers(1, len(whole) + 1)])
        for at in random.integers(0, len(data), random.integers(0, 6)):
            data[at] = random.integers(0, 256)
        with suppress(UnreadableImage):
            assert decode_image(bytes(data), PixelBudget(1 << 20)).mode == "RGB"
