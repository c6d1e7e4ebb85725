import fs from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished, type TestContext } from 'vitest';
import { freePort } from '../../../simulator/free-port.ts';
import { mirroredJob, requestOf, submitQuietJob } from '../../support/e2e-job.ts';
import { Place } from '../../support/e2e-place.ts';
import { Program } from '../../support/e2e-program.ts';
import { until } from '../../support/e2e-until.ts';
import { EventReader } from '../../support/view-place.ts';

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

/** The link that a program printed; empty if it has not. */
const linkIn = ({ stdout }: { readonly stdout: string }) => /^http\S+\?ticket=\S+$/m.exec(stdout)?.[0] ?? '';

async function linkOf(program: Program): Promise<string> {
  return until('the link', () => linkIn(program) || undefined);
}

/** A quiet job that an agent with a view follows. */
async function viewedJob(context: TestContext, sections: Record<string, unknown> = {}) {
  const place = Place.make(context);
  const quiet = await submitQuietJob(place);
  const listen = `127.0.0.1:${await freePort()}`;
  place.configure(quiet.sandbox, { watch: [requestOf(quiet.job)], view: { listen }, ...sections });
  const agent = await place.run();
  await agent.logs('view listening');
  const view = new View(linkIn(await place.agent('view')), place);
  const { jobId } = quiet.job;
  const content = `job=${jobId}&task=${quiet.task.taskId}&file=stdout`;
  return { ...quiet, place, agent, view, content, file: `file=${jobId}/${quiet.task.taskId}/stdout` };
}

it('the view follows a mirror byte for byte, over a rewrite and over a kill of the agent', async (context) => {
  const { place, agent, view, content, file, task, mirror } = await viewedJob(context);
  const stdout = task.files.stdout;
  const page = view.look(`${file}&jobs=1&service=1`);
  fs.appendFileSync(stdout, 'first příliš\n'.repeat(1_000));
  const { size } = fs.statSync(stdout);
  const { version } = await page.until('length', ({ bytes }) => bytes === size);
  const seen = await view.bytes(`raw?${content}&version=${version}`);
  expect(seen.equals(fs.readFileSync(mirror)) && seen.equals(fs.readFileSync(stdout))).toBe(true);
  await page.until('jobs', ({ jobs }) => jobs[0]?.liveBytes === size);
  await page.until('figures', (figures) => figures?.some(({ calls }) => Object.keys(calls).length > 0) ?? false);

  agent.signal('SIGKILL');
  await agent.ended;
  fs.appendFileSync(stdout, 'while it was dead\n');
  const again = await place.run();
  await again.logs('view listening');
  const more = fs.statSync(stdout).size;
  await page.until('length', ({ bytes }) => bytes === more);
  fs.writeFileSync(stdout, 'rewritten\n');
  await page.until('length', (now) => now.version === 'g2' && now.bytes === 10);
  expect((await view.ask(`lines?${content}&version=${version}`)).status).toBe(409);
  expect((await view.bytes(`lines?${content}`)).toString()).toBe('rewritten\n');
  const { former } = JSON.parse((await view.bytes(`generations?${content}`)).toString());
  expect((await view.bytes(`raw?${content}&version=${former[0].version}`)).length).toBe(more);
});

it('the view is served by the command where no agent serves it, beside one or without', async (context) => {
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
  // One link, with a ticket for the token.
  expect(beside.stdout.match(/http:\/\/\S+/g)).toHaveLength(1);
  const token = fs.readFileSync(path.join(place.state, 'view-token'), 'utf8').trim();
  expect(beside.stdout + beside.stderr).not.toContain(token);
  await expect(view.ask(`lines?${content}`)).rejects.toThrow();
  const alone = place.start(['view']);
  await linkOf(alone);
  await until('the word', () => alone.stderr.includes('no agent is running'));
  alone.signal('SIGTERM');
  await alone.ended;
});

it('comes, and searches, where the directory that the agent was started in is gone', async (context) => {
  const place = Place.make(context);
  const { sandbox, job, task } = await submitQuietJob(place);
  fs.writeFileSync(task.files.stdout, 'a line with axxb\n');
  const port = await freePort();
  place.configure(sandbox, { watch: [requestOf(job)], view: { listen: `127.0.0.1:${port}` } });
  const gone = path.join(place.directory, 'gone');
  fs.mkdirSync(gone);
  const agent = new Program(['run', '-c', place.configFile], { cwd: gone });
  context.onTestFinished(async () => void (await agent.kill()));
  await agent.logs('agent ready');
  fs.rmdirSync(gone);
  await agent.logs('view listening');
  await place.mirrored(job, 'stdout');
  const view = new View(`http://127.0.0.1:${port}/`, place);
  const [found] = await view.lines<{ lines: { text: string }[] }>('find?text=a.*b&regex=1');
  expect(found?.lines[0]?.text).toContain('axxb');
  expect(agent.logged('cannot listen for the view')).toEqual([]);
});
