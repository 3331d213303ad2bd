// A zip archive without compression: emitted files are small texts.

const CRC_TABLE = Array.from({ length: 256 }, (_, n) => {
  let c = n;
  for (let k = 0; k < 8; k++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  return c >>> 0;
});

function crc32(bytes) {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = CRC_TABLE[(crc ^ byte) & 0xff] ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}

// [size, value] pairs, little-endian.
function record(...fields) {
  const bytes = new Uint8Array(fields.reduce((sum, [size]) => sum + size, 0));
  const view = new DataView(bytes.buffer);
  let at = 0;
  for (const [size, value] of fields) {
    if (size === 2) view.setUint16(at, value, true);
    else view.setUint32(at, value, true);
    at += size;
  }
  return bytes;
}

const ZIP_DATE = 0x21; // 1980-01-01: the same files give the same archive
const UTF8_NAMES = 0x800;
const EXECUTABLE = (0o100755 << 16) >>> 0, PLAIN = (0o100644 << 16) >>> 0;

function zip(files) {
  const local = [], central = [];
  let offset = 0, centralBytes = 0;
  for (const { name, content } of files) {
    const path = new TextEncoder().encode(name), data = new TextEncoder().encode(content);
    const common = [[2, 20], [2, UTF8_NAMES], [2, 0], [2, 0], [2, ZIP_DATE], [4, crc32(data)], [4, data.length],
      [4, data.length], [2, path.length], [2, 0]];
    const head = record([4, 0x04034b50], ...common);
    const entry = record([4, 0x02014b50], [2, 0x0314], ...common, [2, 0], [2, 0], [2, 0],
      [4, name.endsWith('.sh') ? EXECUTABLE : PLAIN], [4, offset]);
    local.push(head, path, data);
    central.push(entry, path);
    offset += head.length + path.length + data.length;
    centralBytes += entry.length + path.length;
  }
  const end = record([4, 0x06054b50], [2, 0], [2, 0], [2, files.length], [2, files.length], [4, centralBytes], [4, offset], [2, 0]);
  return new Blob([...local, ...central, end], { type: 'application/zip' });
}
