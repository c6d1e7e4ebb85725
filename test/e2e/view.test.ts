/** The view of the built program: within `agent run`, and by `agent view`. */
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { expect, it, onTestFinished, type TestContext } from 'vitest';
import type { SearchLine } from '../../src/view/contract/addresses.ts';
import type { Events } from '../../src/view/contract/events.ts';
import { mirroredJob, orderOf, submitQuietJob } from '../support/e2e-job.ts';
import { Place } from '../support/e2e-place.ts';
import type { Program } from '../support/e2e-program.ts';
import { PATIENCE, until } from '../support/e2e-until.ts';
import { freePort } from '../support/free-port.ts';
import { EventReader } from '../support/view-events.ts';

const MIB = 1024 * 1024;
const BIG_BYTES = Number(process.env['JOBTAIL_VIEW_MIB'] ?? 64) * MIB;

/** A view as a program that has its token asks it. */
class View {
  readonly #origin: string;
  readonly #headers: Record<string, string>;

  constructor(link: string, { state }: Place) {
    this.#origin = new URL(link).origin;
    const token = fs.readFileSync(path.join(state, 'view-token'), 'utf8').trim();
    this.#headers = { authorization: `Bearer ${token}` };
  }

  get origin(): string {
    return this.#origin;
  }

  ask(address: string, signal?: AbortSignal): Promise<Response> {
    return fetch(`${this.#origin}/api/${address}`, { headers: this.#headers, ...(signal && { signal }) });
  }

  async bytes(address: string): Promise<Buffer> {
    const answer = await this.ask(address);
    if (!answer.ok) throw new Error(`${address}: ${answer.status} ${await answer.text()}`);
    return Buffer.from(await answer.arrayBuffer());
  }

  async lines<T>(address: string): Promise<T[]> {
    const text = (await this.bytes(address)).toString('utf8');
    return text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as T);
  }

  /** A stream that is opened again when it breaks, as a browser does. */
  look(query: string): EventReader {
    const reader = new EventReader();
    const over = new AbortController();
    onTestFinished(() => over.abort());
    void (async () => {
      while (!over.signal.aborted) {
        try {
          const { body } = await this.ask(`events?${query}`, over.signal);
          const decoder = new TextDecoder();
          for await (const piece of body ?? []) reader.take(decoder.decode(piece, { stream: true }));
        } catch {
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
        reader.broken();
      }
    })();
    return reader;
  }
}

const linkIn = ({ stdout }: { readonly stdout: string }) => /^http\S+\?ticket=\S+$/m.exec(stdout)?.[0] ?? '';

async function linkOf(program: Program): Promise<string> {
  return until('the link', () => linkIn(program) || undefined);
}

/** A quiet job that an agent with a view follows. */
async function viewedJob(context: TestContext, sections: Record<string, unknown> = {}) {
  const place = Place.make(context);
  const quiet = await submitQuietJob(place);
  const listen = `127.0.0.1:${await freePort()}`;
  place.configure(quiet.sandbox, { watch: [orderOf(quiet.job)], view: { listen }, ...sections });
  const agent = await place.run();
  await agent.says('the view is at ');
  const view = new View(linkIn(await place.agent('view')), place);
  const { jobId } = quiet.job;
  const content = `job=${jobId}&task=${quiet.task.taskId}&file=stdout`;
  return { ...quiet, place, agent, view, content, file: `file=${jobId}/${quiet.task.taskId}/stdout` };
}

it('follows a mirror byte for byte, over a rewrite and over a kill of the agent', PATIENCE, async (context) => {
  const { place, agent, view, content, file, task, mirror } = await viewedJob(context);
  const stdout = task.files.stdout;
  const page = view.look(`${file}&jobs=1&service=1`);
  fs.appendFileSync(stdout, 'first příliš\n'.repeat(1_000));
  const { size } = fs.statSync(stdout);
  const { version } = await page.until('length', ({ bytes }) => bytes === size);
  const seen = await view.bytes(`raw?${content}&version=${version}`);
  expect(seen.equals(fs.readFileSync(mirror)) && seen.equals(fs.readFileSync(stdout))).toBe(true);
  await page.until('jobs', ({ jobs }) => jobs[0]?.liveBytes === size);
  expect((await page.until('service')).withinAgent).toBe(true);

  agent.signal('SIGKILL');
  await agent.ended;
  fs.appendFileSync(stdout, 'while it was dead\n');
  const again = await place.run();
  await again.says('the view is at ');
  const more = fs.statSync(stdout).size;
  await page.until('length', ({ bytes }) => bytes === more);
  fs.writeFileSync(stdout, 'rewritten\n');
  await page.until('length', (now) => now.version === 'g2' && now.bytes === 10);
  expect((await view.ask(`lines?${content}&version=${version}`)).status).toBe(409);
  expect((await view.bytes(`lines?${content}`)).toString()).toBe('rewritten\n');
  const { former } = JSON.parse((await view.bytes(`generations?${content}`)).toString());
  expect((await view.bytes(`raw?${content}&version=${former[0].version}`)).length).toBe(more);
  const { figures } = await page.until('figures');
  expect(figures.length).toBeGreaterThan(0);
});

it(
  'is said to be missing while its address is taken, and the agent follows all the same',
  PATIENCE,
  async (context) => {
    const place = Place.make(context);
    const { sandbox, job, task, mirror } = await submitQuietJob(place);
    const port = await freePort();
    const taken = net.createServer().listen(port, '127.0.0.1');
    await once(taken, 'listening');
    onTestFinished(() => void taken.close());
    place.configure(sandbox, { watch: [orderOf(job)], view: { listen: `127.0.0.1:${port}` } });
    const agent = await place.run();
    expect(await agent.says('there is no view at ')).toMatchObject({
      level: 'error',
      hint: expect.stringContaining('view.listen'),
    });
    fs.appendFileSync(task.files.stdout, 'followed\n');
    await place.mirrored(job, 'stdout');
    // Whoever holds the port gets no link, and is named.
    const unproven = `listens at http://127.0.0.1:${port}/ and has not proven to be the view`;
    const { stdout } = await place.agent('status');
    expect(stdout).toContain(`the view does not answer at http://127.0.0.1:${port}/: a process of user`);
    expect(stdout).toContain(unproven);
    expect((await place.agent('check')).stdout).toContain(unproven);
    const own = place.start(['view', '--no-open']);
    expect(await linkOf(own)).not.toContain(`:${port}/`);
    expect(own.stderr).toContain(unproven);
    own.signal('SIGINT');
    await own.ended;
    taken.close();
    await agent.says('the view is at ');
    const status = JSON.parse((await place.agent('status', '--json')).stdout);
    expect(status.view).toEqual({ address: `http://127.0.0.1:${port}/`, answers: true });
    expect(fs.readFileSync(mirror, 'utf8')).toBe('followed\n');
    expect(agent.log.map((line) => JSON.stringify(line)).join('\n'), 'no log has the token').not.toContain(
      fs.readFileSync(path.join(place.state, 'view-token'), 'utf8').trim(),
    );
  },
);

it('is where a changed configuration says, and what is wrong with that is said', PATIENCE, async (context) => {
  const { place, agent, view, sandbox, job, content } = await viewedJob(context);
  const port = await freePort();
  const listen = `0.0.0.0:${port}`;
  place.configure(sandbox, { watch: [orderOf(job)], view: { listen } });
  expect(await agent.says('the view listens on 0.0.0.0 without encryption')).toMatchObject({ level: 'warn' });
  await until('the other address', () => agent.log.some(({ msg }) => msg.includes(`127.0.0.1:${port}/`)));
  await expect(view.ask(`lines?${content}`)).rejects.toThrow();
  const other = new View(linkIn(await place.agent('view')), place);
  expect((await other.ask(`lines?${content}`)).status).toBe(200);
  const checked = (await place.agent('check')).stdout;
  expect(checked).toContain(`http://127.0.0.1:${port}/ answers; its token is in ${place.state}/view-token`);
  expect(checked).toContain('without encryption');
  fs.chmodSync(path.join(place.state, 'view-token'), 0o644);
  expect(await place.agent('check')).toMatchObject({ code: 3, stdout: expect.stringContaining('chmod 600') });
});

it('is served by the command where no agent serves it, beside one or without', PATIENCE, async (context) => {
  const { place, job, mirror, agent, stdout } = await mirroredJob(context, Buffer.from('mirrored\n'));
  const [task] = job.tasks;
  const content = `job=${job.jobId}&task=${task?.taskId}&file=stdout`;
  const beside = place.start(['view', '--no-open']);
  const view = new View(await linkOf(beside), place);
  expect((await view.bytes(`lines?${content}`)).toString()).toBe('mirrored\n');
  const page = view.look(`file=${job.jobId}/${task?.taskId}/stdout`);
  fs.appendFileSync(stdout, 'more\n');
  await page.until('length', ({ bytes }) => bytes === 14);
  expect((await page.until('agent')).running).toBe(true);
  agent.signal('SIGTERM');
  await agent.ended;
  await page.until('agent', ({ running }) => !running);
  expect((await view.bytes(`lines?${content}`)).equals(fs.readFileSync(mirror))).toBe(true);
  beside.signal('SIGINT');
  expect(await beside.ended).toMatchObject({ code: 0 });
  await expect(view.ask(`lines?${content}`)).rejects.toThrow();
  const alone = place.start(['view']);
  await linkOf(alone);
  await until('the word', () => alone.stderr.includes('no agent is running'));
  alone.signal('SIGTERM');
  await alone.ended;
});

it('without a state says what to do', PATIENCE, async (context) => {
  const place = Place.make(context);
  place.configure(await place.startSandbox());
  expect(await place.agent('view')).toMatchObject({
    code: 8,
    stdout: '',
    stderr: expect.stringContaining('agent run'),
  });
});

it(`opens, counts and searches ${BIG_BYTES / MIB} MiB in memory that stays flat`, PATIENCE, async (context) => {
  const { place, job, mirror, agent } = await mirroredJob(context, Buffer.from('begin\n'));
  agent.signal('SIGTERM');
  await agent.ended;
  // Lines at both ends and in the middle, and zeros in between: a file that is large and takes little of the disk.
  const line = Buffer.from('a line with a needle in it\n');
  const opened = fs.openSync(mirror, 'r+');
  fs.ftruncateSync(opened, BIG_BYTES);
  const places = [0, BIG_BYTES / 2 - 13, BIG_BYTES - 2_000 * line.length];
  const lines = Buffer.alloc(2_000 * line.length, line);
  for (const at of places) fs.writeSync(opened, lines, 0, lines.length, at);
  fs.closeSync(opened);

  const program = place.start(['view', '--no-open']);
  const view = new View(await linkOf(program), place);
  const content = `job=${job.jobId}&task=${job.tasks[0]?.taskId}&file=stdout`;
  await view.bytes(`lines?${content}`);
  const memory = () =>
    Number(/VmRSS:\s+(\d+) kB/.exec(fs.readFileSync(`/proc/${program.pid}/status`, 'utf8'))?.[1]) / 1024;
  const before = memory();
  let most = before;
  const watching = setInterval(() => (most = Math.max(most, memory())), 20);
  onTestFinished(() => clearInterval(watching));
  // At once, before anything is counted.
  expect((await view.bytes(`lines?${content}&bytes=4096`)).toString()).toMatch(/a line with a needle in it\n$/);
  const said = await view.lines<SearchLine>(`search?${content}&text=NEEDLE`);
  expect(said.at(-1)).toEqual({ done: true, count: 6_000, version: 'g1' });
  const marks = said.find((each) => 'marks' in each);
  expect(marks).toMatchObject({ marks: expect.arrayContaining([2_000]) });
  const page = view.look(`file=${job.jobId}/${job.tasks[0]?.taskId}/stdout`);
  await page.until('length', ({ counted, lines: count }: Events['length']) => counted === BIG_BYTES && count === 6_000);
  const { byte } = JSON.parse((await view.bytes(`place?${content}&line=5999`)).toString());
  expect(byte).toBe(BIG_BYTES - line.length);
  expect((await view.bytes(`lines?${content}&from=${byte + 3}`)).equals(line)).toBe(true);
  const response = await view.ask(`raw?${content}`);
  let downloaded = 0;
  for await (const piece of response.body ?? []) downloaded += piece.length;
  expect(downloaded).toBe(BIG_BYTES);
  expect(most - before, 'MiB more, at most').toBeLessThan(150);
});

it('under load costs its own thread, and the one that polls next to nothing', PATIENCE, async (context) => {
  const { agent, view, content, task } = await viewedJob(context, {
    poll: { minIntervalSeconds: 1, maxIntervalSeconds: 5 },
  });
  fs.writeFileSync(task.files.stdout, Buffer.alloc(16 * MIB, 'some line of a log\n'));
  await until('the mirror', async () => (await view.bytes(`lines?${content}&bytes=4096`)).length > 0);
  const { size } = fs.statSync(task.files.stdout);
  await until(
    'all of it',
    async () => (await view.ask(`lines?${content}&bytes=4096`)).headers.get('view-bytes') === String(size),
  );
  /** Processor time of the thread that polls, and of all of them, in ticks of the system. */
  const ticksOf = (file: string) => {
    const fields = fs
      .readFileSync(file, 'utf8')
      .replace(/^.*\) /, '')
      .split(' ');
    return Number(fields[11]) + Number(fields[12]);
  };
  const ticks = () => ({
    main: ticksOf(`/proc/${agent.pid}/task/${agent.pid}/stat`),
    all: ticksOf(`/proc/${agent.pid}/stat`),
  });
  const begin = ticks();
  await until('two seconds of work', async () => {
    await Promise.all(Array.from({ length: 6 }, () => view.lines(`search?${content}&text=LOG`)));
    return ticks().all - begin.all > 200;
  });
  const end = ticks();
  expect((end.main - begin.main) / (end.all - begin.all), 'the share of the thread that polls').toBeLessThan(0.25);
});
