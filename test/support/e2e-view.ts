/** The view of the built program, asked as a program with its token does. */
import fs from 'node:fs';
import path from 'node:path';
import { onTestFinished, type TestContext } from 'vitest';
import { requestOf, submitQuietJob } from './e2e-job.ts';
import { Place } from './e2e-place.ts';
import type { Program } from './e2e-program.ts';
import { until } from './e2e-until.ts';
import { freePort } from './free-port.ts';
import { EventReader } from './view-events.ts';

/** A view as a program that has its token asks it. */
export class View {
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
export const linkIn = ({ stdout }: { readonly stdout: string }) => /^http\S+\?ticket=\S+$/m.exec(stdout)?.[0] ?? '';

export async function linkOf(program: Program): Promise<string> {
  return until('the link', () => linkIn(program) || undefined);
}

/** A quiet job that an agent with a view follows. */
export async function viewedJob(context: TestContext, sections: Record<string, unknown> = {}) {
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
