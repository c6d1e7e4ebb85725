/** Who receives notifications: a simulated address that takes events, refuses them, or is silent. */
import { JobtailError } from '../../src/errors.ts';
import type { NotifyEvent } from '../../src/notification.ts';
import type { HttpClient } from '../../src/remote/http/http-client.ts';
import { type Clock, sleep } from '../../src/system/clock.ts';

/** The time limit of the real client. */
const SILENT_MS = 30_000;
const WORK_MS = 120;

export class SimulatedReceiver {
  state: 'takes' | 'refuses' | 'silent' = 'takes';
  /** How often each event was taken, by its id. */
  readonly taken = new Map<string, number>();
  /** The jobs and types of the events that were taken. */
  readonly told = new Set<string>();
  /** Events that were refused, or got no answer. */
  missed = 0;
  /** Called with each body that it is sent. */
  onRequest: (body: string) => void = () => {};

  http(clock: Clock): Pick<HttpClient, 'request' | 'close'> {
    return {
      close: async () => {},
      request: async ({ body, signal }) => {
        this.onRequest(String(body));
        const isSilent = this.state === 'silent';
        await sleep(clock, isSilent ? SILENT_MS : WORK_MS, signal);
        if (this.state !== 'takes') this.missed += 1;
        if (isSilent) throw new JobtailError('timeout', 'the receiver did not start to respond in time');
        if (this.state === 'refuses') return answered(503);
        const { id, data } = JSON.parse(String(body)) as { readonly id: string; readonly data: NotifyEvent };
        this.taken.set(id, (this.taken.get(id) ?? 0) + 1);
        for (const jobId of data.jobs ?? [data.jobId]) this.told.add(`${jobId} ${data.type}`);
        return answered(204);
      },
    };
  }
}

const answered = (status: number) => ({
  ...{ status, contentType: 'text/plain', charset: 'utf-8', retryAfterMs: undefined },
  body: (async function* () {})(),
});
