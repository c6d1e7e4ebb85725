/**
 * What the three tasks of the demo do: output as programs of clusters write it, hard to mirror, and result files. The same
 * seed writes the same bytes; only the moments at which they appear differ.
 */
import { appendFile, mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

export const DEMO_TASKS = ['solver', 'training', 'sensors'] as const;
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

/** Comments of operators, in UTF-8. */
const SENTENCES = [
  'Příliš žluťoučký kůň úpěl ďábelské ódy nad hladinou řeky.',
  'Ξεσκεπάζω την ψυχοφθόρα βδελυγμία, γράφει η ουρά των εργασιών.',
  'いろはにほへと散りぬるを 計算ノードは静かに動いている。',
  'نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر',
  'calibration ✓ after 👩🏽‍🔬 looked at 🌡️ and 📈',
  'plain text & <markup> "quoted" \ttabbed',
];
const WRITERS = { solver: writeSolver, training: writeTraining, sensors: writeSensors } as const;

/** Runs one task to its end. */
export const runDemoTask = (task: DemoTask, world: DemoWorld): Promise<void> => WRITERS[task](world);

/** The log of a flow solver, in pieces that end anywhere; its residuals, and fields that it writes. */
async function writeSolver(world: DemoWorld): Promise<void> {
  const random = randomNumbers(world.seed);
  const { steps, directory } = world;
  const stdout = cutter(random, world.stdout);
  const noise = (value: number) => value * (0.8 + random(400) / 1_000);
  await stdout.add(
    'Create time\n\nCreate mesh for time = 0\n\nSIMPLE: convergence criteria 1e-05\n\nStarting time loop\n\n',
  );
  for (let step = 1; step <= steps; step++) {
    const residuals = ['Ux', 'Uy', 'Uz', 'p'].map(
      (field, index) => [field, noise(1 / step ** (1.1 + index / 10))] as const,
    );
    const solved = residuals.map(([field, initial]) => {
      const [solver, final] = [field === 'p' ? 'GAMG' : 'smoothSolver', initial / 20].map(String);
      return `${solver}:  Solving for ${field}, Initial residual = ${initial.toExponential(5)}, Final residual = ${Number(final).toExponential(5)}, No Iterations ${1 + random(9)}`;
    });
    const continuity = `time step continuity errors : sum local = ${noise(1e-6).toExponential(5)}, global = ${noise(1e-9).toExponential(5)}`;
    const time = `ExecutionTime = ${(step * 0.1).toFixed(2)} s  ClockTime = ${Math.floor(step / 10)} s`;
    await stdout.add(`Time = ${step}\n\n${[...solved, continuity, time].join('\n')}\n\n`);
    const [, pressure = 0] = residuals[3] ?? [];
    await appendFile(join(directory, 'task.log'), `step ${step}  residual ${pressure.toExponential(3)}\n`);
    if (step % 10 === 0)
      world.stderr(Buffer.from(`--> FOAM Warning : bounding k, min: ${-noise(0.1)} at time ${step}\n`));
    await appendFile(join(directory, 'progress.txt'), `${step} of ${steps} steps\n`);
    if (step % 3 === 1) await writeResult(world, `fields/p at ${step}`, randomBytes(random, random(8_000)));
    await world.pause();
  }
  await stdout.add('End\n\nFinalising parallel run\n');
  await stdout.end();
  await writeResult(world, 'postProcessing/empty file', Buffer.alloc(0));
}

/** Lines of a training with CRLF, a progress bar, a progress file that each stage writes anew, and growing checkpoints. */
async function writeTraining(world: DemoWorld): Promise<void> {
  const random = randomNumbers(world.seed + 1);
  const { steps, directory } = world;
  const progress = join(directory, 'progress.txt');
  const stages = [Math.ceil(steps / 3), Math.ceil((2 * steps) / 3)];
  for (let step = 1; step <= steps; step++) {
    const percent = Math.round((100 * step) / steps);
    const loss = (2 / Math.sqrt(step)) * (0.9 + random(200) / 1_000);
    world.stdout(Buffer.from(`step ${step} of ${steps}  \u001b[36mloss ${loss.toFixed(4)}\u001b[0m  lr 3.0e-4\r\n`));
    world.stderr(Buffer.from(`\rtraining ${'█'.repeat(percent / 4).padEnd(25, '░')} ${percent} %`));
    await appendFile(join(directory, 'task.log'), `step ${step}: gradient norm ${(loss * 3).toFixed(3)}\r\n`);
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

/** Measurements of an old program, whose degree signs are no UTF-8, and comments in many languages. */
async function writeSensors(world: DemoWorld): Promise<void> {
  const random = randomNumbers(world.seed + 2);
  const { steps, directory } = world;
  const stderr = cutter(random, world.stderr);
  for (let step = 1; step <= steps; step++) {
    const value = (20 + random(800) / 100).toFixed(2).replace('.', ',');
    world.stdout(Buffer.from(`Fühler ${1 + random(8)}  ${value} °C\n`, 'latin1'));
    await appendFile(join(directory, 'task.log'), `[${step}/${steps}] ${SENTENCES[random(SENTENCES.length)]}\n`);
    await appendFile(join(directory, 'progress.txt'), `krok ${step} z ${steps} · 第${step}歩\n`);
    if (step % 4 === 0) await stderr.add(`\u001b[1;31mvarování\u001b[0m: ${SENTENCES[random(SENTENCES.length)]}\n`);
    const name = `část ${step % 7}/měření №${step} 測定.dat`;
    if (step % 3 === 1) await writeResult(world, name, randomBytes(random, random(8_000)));
    await world.pause();
  }
  await stderr.end();
  await writeResult(world, 'summary/Σύνοψη.txt', Buffer.from(SENTENCES.join('\n')));
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
