import fs from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
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

  ask(address: string, signal: AbortSignal | null = null): Promise<Response> {
    return fetch(`${this.#origin}/api/${address}`, { headers: this.#headers, signal });
  }

  async bytes(address: string): Promise<Buffer> {
    const answer = await this.ask(address);
    if (!answer.ok) throw new Error(`${address}: ${answer.status} ${await answer.text()}`);
    return Buffer.from(await answer.arrayBuffer());
  }

  look(query: string): EventReader {
    const reader = new EventReader();
    const over = new AbortController();
    onTestFinished(() => over.abort());
    void (async () => {
      const { body } = await this.ask(`events?${query}`, over.signal);
      const decoder = new TextDecoder();
      for await (const piece of body ?? []) reader.take(decoder.decode(piece, { stream: true }));
    })().catch(() => {});
    return reader;
  }
}

/** The link that a program printed; empty if it has not. */
const linkIn = ({ stdout }: { readonly stdout: string }) => /^http\S+\?ticket=\S+$/m.exec(stdout)?.[0] ?? '';

async function linkOf(program: Program): Promise<string> {
  return until('the link', () => linkIn(program) || undefined);
}

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
  expect((await view.bytes('find?text=a.*b&regex=1')).toString()).toContain('axxb');
  expect(agent.logged('cannot listen for the view')).toEqual([]);
});
