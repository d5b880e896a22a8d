// Owns: the work of the node row of the real-programs test.
// May include: nothing.
// Called by: runner.py, in an empty directory, without and with the library.
// Invariants: prints the same on every run; leaves no process behind.
'use strict';
const crypto = require('crypto');
const zlib = require('zlib');
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const { execFileSync } = require('child_process');

const sha = (data) => crypto.createHash('sha256').update(data).digest('hex').slice(0, 16);

function work(seed) {
  let state = seed;
  const next = (n) => { state = (state * 1103515245 + 12345) % 2147483648; return state % n; };
  const kept = [];
  let total = 0;
  for (let i = 0; i < 30000; i++) {
    kept.push(Buffer.alloc(next(20000) + 1, i & 255));
    if (kept.length > 200) total += kept.splice(next(200), 1)[0].length;
  }
  return total;
}

if (!isMainThread) {
  parentPort.postMessage({ seed: workerData, total: work(workerData), buffer: new Uint8Array(100000).fill(workerData) });
} else {
  (async () => {
    const tree = {};
    for (let i = 0; i < 2000; i++) tree['k' + i] = Array.from({ length: 30 }, (_, j) => ({ j, s: 'x'.repeat(j), f: j / 7 }));
    const text = JSON.stringify(tree);
    console.log('json', text.length, sha(JSON.stringify(JSON.parse(text))));
    const results = await Promise.all([1, 2, 3, 4].map((seed) => new Promise((resolve, reject) => {
      const worker = new Worker(__filename, { workerData: seed });
      worker.on('message', resolve);
      worker.on('error', reject);
    })));
    console.log('workers', results.map((r) => `${r.seed}:${r.total}:${r.buffer[99999]}`).join(' '));
    const key = crypto.scryptSync('password', 'salt', 32, { N: 4096 });
    const cipher = crypto.createCipheriv('aes-256-gcm', key, Buffer.alloc(12));
    const sealed = Buffer.concat([cipher.update(text), cipher.final()]);
    console.log('crypto', sha(sealed), cipher.getAuthTag().toString('hex'));
    const { publicKey, privateKey } = crypto.generateKeyPairSync('rsa', { modulusLength: 2048 });
    console.log('rsa', crypto.verify('sha256', Buffer.from(text), publicKey, crypto.sign('sha256', Buffer.from(text), privateKey)));
    const packed = zlib.brotliCompressSync(text.slice(0, 400000), { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 5 } });
    console.log('zlib', zlib.gunzipSync(zlib.gzipSync(text)).toString() === text, zlib.brotliDecompressSync(packed).length);
    const list = [];
    for (let i = 0; i < 300000; i++) list.push({ i, s: String(i) });
    console.log('objects', list.filter((o) => o.i % 3 === 0).map((o) => o.s).join('').length);
    console.log('re', (text.match(/"j":2\d,"s":"(x+)"/g) || []).length);
    console.log('child', execFileSync(process.execPath, ['-p', '[1,2,3].map((x) => x * x).join()']).toString().trim());
    console.log('node done');
  })();
}
