// A job's process that writes what is hard to mirror, append-only, to stdout, stderr, task.log and progress.txt of its
// directory until the file `stop` appears there: `e2e-writer.mjs SEED`. Text of many scripts, colours, carriage returns,
// and (in each file with another frequency) NULs and bytes that are not UTF-8, in writes that end anywhere, also inside
// characters.
import { existsSync, openSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const LONGEST_MS = 10 * 60_000;
const TEXTS = [
  'Příliš žluťoučký kůň úpěl ďábelské ódy\n',
  'Ξεσκεπάζω την ψυχοφθόρα βδελυγμία\r\n',
  '敏捷的棕色狐狸跳过了懒狗 春眠不覚暁 다람쥐\n',
  '\u001b[32mok\u001b[0m \u{1F680}\u{1F469}\u200d\u{1F52C} \u{10348}\n',
  'step 17/100 [#####.....]\r',
  ' \t<&>"\' ]]> &#x1B; \ufeff\ufffd\n\n',
  'plain ASCII, as most of any log is, 0123456789 abcdefghijklmnopqrstuvwxyz\n',
].map((text) => Buffer.from(text));
const STRANGE = [
  Buffer.from([0x00]),
  Buffer.from([0x00, 0x00, 0x1b, 0x07, 0x08, 0x7f]),
  Buffer.from([0xff, 0xfe]),
  Buffer.from([0x80]),
  Buffer.from([0xc3]),
  Buffer.from([0xe2, 0x82]),
  Buffer.from([0xed, 0xa0, 0x80]),
  Buffer.from([0xf0, 0x9f, 0x9a]),
  Buffer.from([0xc0, 0xaf]),
];

let written = 0;
let state = Number(process.argv[2]) >>> 0;
/** mulberry32: a whole number from 0 up to `below`. */
function random(below) {
  state = (state + 0x6d2b79f5) >>> 0;
  let mixed = Math.imul(state ^ (state >>> 15), state | 1);
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
  return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
}

const pick = (pieces) => pieces[random(pieces.length)];

/** An endless stream for each file, of which each write takes the next bytes wherever they end. */
function streamInto([fd, strangeOneIn]) {
  let rest = Buffer.alloc(0);
  return () => {
    const wanted = 1 + random(6 * 1024);
    const pieces = [rest];
    for (let length = rest.length; length < wanted; length += pieces.at(-1).length) {
      pieces.push(random(strangeOneIn) === 0 ? pick(STRANGE) : pick(TEXTS));
    }
    const bytes = Buffer.concat(pieces);
    for (let at = 0; at < wanted; ) at += writeSync(fd, bytes, at, wanted - at);
    rest = bytes.subarray(wanted);
    written += wanted;
  };
}

const writes = [
  [1, 60],
  [2, Number.MAX_SAFE_INTEGER],
  [openSync('task.log', 'a'), 3_000],
  [openSync('progress.txt', 'a'), 300],
].map(streamInto);
const endsAt = Date.now() + LONGEST_MS;
while (!existsSync('stop') && Date.now() < endsAt) {
  for (const write of writes) if (random(3) > 0) write();
  // Slower and slower: a machine that is busy must not have to follow hundreds of megabytes.
  await sleep((10 + random(50)) * (1 + written / 1_000_000));
}
