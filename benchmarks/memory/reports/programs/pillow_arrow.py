"""An image that is exported to Arrow is never freed."""

from PIL import Image


def tick(number):
    Image.new("RGBA", (120, 120)).__arrow_c_array__()


PER_SECOND = 100
