/**
 * What the two tasks of the demo do: output that is hard to mirror, and result files. The same seed writes the same
 * bytes; only the moments at which they appear differ.
 */
import { appendFile, mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

export const DEMO_TASKS = ['languages', 'progress'] as const;
type DemoTask = (typeof DEMO_TASKS)[number];

/**
 * The names of results: in all languages; of characters that every release of REST takes; and of those without
 * directories (docs/dev/rest.md 3.4).
 */
export const DEMO_NAMES = ['any', 'plain', 'flat'] as const;
export type DemoNames = (typeof DEMO_NAMES)[number];

/** What a task writes to, and how it passes the time. */
interface DemoWorld {
  /** The task's directory. */
  readonly directory: string;
  /** A write with a flush: the bytes are in the file when it returns. */
  readonly stdout: (bytes: Buffer) => void;
  readonly stderr: (bytes: Buffer) => void;
  /** Waits for the next step. */
  readonly pause: () => Promise<void>;
  readonly steps: number;
  readonly seed: number;
  readonly names: DemoNames;
}

const SENTENCES = [
  'Příliš žluťoučký kůň úpěl ďábelské ódy nad hladinou řeky.',
  'Ξεσκεπάζω την ψυχοφθόρα βδελυγμία, γράφει η ουρά των εργασιών.',
  'いろはにほへと散りぬるを 計算ノードは静かに動いている。',
  'نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر',
  'solver ✓ converged 🚀 after 👩🏽‍🔬 looked at 🌡️ and 📈',
  'plain text & <markup> "quoted" \ttabbed',
];
const COLOURS = [31, 32, 33, 34, 35, 36];

/** Runs one task to its end. */
export async function runDemoTask(task: DemoTask, world: DemoWorld): Promise<void> {
  await (task === 'languages' ? writeLanguages(world) : writeProgress(world));
}

/** Many languages in colour, flushed at places that cut characters, and small result files. */
async function writeLanguages(world: DemoWorld): Promise<void> {
  const random = randomNumbers(world.seed);
  const stdout = cutter(random, world.stdout);
  const stderr = cutter(random, world.stderr);
  const log = cutter(random, (bytes) => appendFile(join(world.directory, 'task.log'), bytes));
  for (let step = 1; step <= world.steps; step++) {
    for (let count = 5 + random(20); count > 0; count--) await stdout.add(`${sentence(random)}\n`);
    await log.add(`[${step}/${world.steps}] ${sentence(random)}\n`);
    await appendFile(join(world.directory, 'progress.txt'), `krok ${step} z ${world.steps} · 第${step}歩\n`);
    if (step % 4 === 0) await stderr.add(`\u001b[1;31mvarování\u001b[0m: krok ${step} → ${sentence(random)}\n`);
    const name = `část ${step % 7}/měření №${step} 測定.dat`;
    if (step % 3 === 1) await writeResult(world, name, randomBytes(random, random(8_000)));
    await world.pause();
  }
  for (const stream of [stdout, stderr, log]) await stream.end();
  await writeResult(world, 'summary/Σύνοψη.txt', Buffer.from(SENTENCES.join('\n')));
  await writeResult(world, 'summary/empty file', Buffer.alloc(0));
}

/** CRLF lines, CR progress bars, a progress file that is written anew twice besides being appended to, and large result files that grow. */
async function writeProgress(world: DemoWorld): Promise<void> {
  const random = randomNumbers(world.seed + 1);
  const { steps, directory } = world;
  const progress = join(directory, 'progress.txt');
  const stages = [Math.ceil(steps / 3), Math.ceil((2 * steps) / 3)];
  for (let step = 1; step <= steps; step++) {
    const percent = Math.round((100 * step) / steps);
    world.stdout(Buffer.from(`iteration ${step}\r\nresidual\t${(1 / step).toExponential(3)}\r\n`));
    world.stderr(Buffer.from(`\r[${'█'.repeat(percent / 4).padEnd(25, '░')}] ${percent} %`));
    await appendFile(join(directory, 'task.log'), `step ${step}: ${sentence(random)}\r\n`);
    const line = `${percent} % after ${step} of ${steps} steps\n`;
    if (stages.includes(step)) await writeFile(progress, `a new stage begins\n${line}`);
    else await appendFile(progress, line);
    const large = `výstup/large result ${step <= steps / 2 ? 'α' : 'β'}.bin`;
    await writeResult(world, large, randomBytes(random, Math.ceil(4_000_000 / steps)), 'a');
    if (step % 5 === 0) await writeResult(world, `výstup/snapshots/step ${step}.bin`, randomBytes(random, 20_000));
    await world.pause();
  }
  world.stderr(Buffer.from('\ndone\r\n'));
}

function sentence(random: (below: number) => number): string {
  const colour = COLOURS[random(COLOURS.length)];
  return `\u001b[${colour}m${SENTENCES[random(SENTENCES.length)]}\u001b[0m`;
}

/** Writes text in pieces that end anywhere, also inside a character; the rest waits for the next piece. */
function cutter(random: (below: number) => number, write: (bytes: Buffer) => void | Promise<void>) {
  let waiting: Buffer = Buffer.alloc(0);
  return {
    async add(text: string): Promise<void> {
      waiting = Buffer.concat([waiting, Buffer.from(text)]);
      const length = random(waiting.length + 1);
      await write(waiting.subarray(0, length));
      waiting = waiting.subarray(length);
    },
    async end(): Promise<void> {
      await write(waiting);
    },
  };
}

/** Writes a result anew, or appends to it with the flag `a`. */
async function writeResult({ directory, names }: DemoWorld, name: string, bytes: Buffer, flag = 'w'): Promise<void> {
  const path = join(directory, resultName(name, names));
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, bytes, { flag });
}

/** The path of a result in its task's directory. A letter loses its accents; what is none of ASCII then is `~` and its number. */
function resultName(name: string, names: DemoNames): string {
  if (names === 'any') return `results/${name}`;
  const plain = name
    .normalize('NFD')
    .replaceAll(/\p{Mn}/gu, '')
    .replaceAll(/[^ -~]/gu, (character) => `~${character.codePointAt(0)?.toString(16)}`);
  return names === 'plain' ? `results/${plain}` : plain.replaceAll('/', ' ');
}

/** The mulberry32 generator: whole numbers from 0 up to below a bound. */
function randomNumbers(seed: number): (below: number) => number {
  let state = seed | 0;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

function randomBytes(random: (below: number) => number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  for (let at = 0; at < length; at++) bytes[at] = random(256);
  return bytes;
}
