"""A record's C code keeps the texts that it makes."""

import picologging


class Nothing:
    def write(self, text):
        pass

    def flush(self):
        pass


logger = picologging.getLogger("shop")
handler = picologging.StreamHandler(Nothing())
handler.setFormatter(picologging.Formatter("%(asctime)s %(levelname)s %(message)s"))
logger.addHandler(handler)


def tick(number):
    try:
        int(f"no number: {number}")
    except ValueError:
        logger.exception("request %d of %s", number, "x" * 200)


PER_SECOND = 600
