"""Payloads of DUMP and RESTORE that are changed, and have a right checksum all the same."""

FOOTER = 10  # bytes: the version of RDB, and CRC64 (Jones, reflected) of all before it


def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ 0x95AC9329AC4BC9B5 if byte & 1 else byte >> 1
        table.append(byte)
    return table


TABLE = crc_table()


def sealed(body):
    crc = 0
    for byte in body:
        crc = TABLE[(crc ^ byte) & 255] ^ (crc >> 8)
    return body + crc.to_bytes(8, "little")


def change(body, how, place, byte):
    """One change of the bytes before the footer, at a share of their length."""
    body = bytearray(body)
    at = min(int(place * len(body)), len(body) - 1)
    if how == "flip":
        body[at] ^= 1 << (byte % 8)
    elif how == "set":
        body[at] = byte
    elif how == "zero":
        body[at] = 0
    elif how == "cut":
        del body[at:]
    elif how == "drop":
        del body[at:at + 1 + byte % 4]
    elif how == "add":
        body[at:at] = bytes([byte])
    elif how == "swap":
        body[at], body[byte % len(body)] = body[byte % len(body)], body[at]
    return bytes(body)


def mutated(payload, mutations):
    body, version = payload[:-FOOTER], payload[-FOOTER:-8]
    for how, place, byte in mutations:
        if body:
            body = change(body, how, place, byte)
    return sealed(body + version)
