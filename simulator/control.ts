/**
 * The control interface below `/sandbox/`, for tests and people whose sandbox is another process: JSON over HTTP, from
 * this machine only and with the control token only, for a job is any program.
 */
import type { SubmittedJob } from './cluster/cluster.ts';
import type { JobSpec } from './cluster/specs.ts';
import { type Exchange, readBody, sendText } from './exchange.ts';
import { type SandboxPlace, submitTo } from './place.ts';
import { HttpRefusal } from './refusals.ts';

const MAX_BODY_BYTES = 4 * 1024 * 1024;

/** Submits a job, which is all that can be asked; `path` is what follows `/sandbox/`. */
export async function handleControl(exchange: Exchange, path: string, place: SandboxPlace): Promise<void> {
  const { request, response } = exchange;
  const address = request.socket.remoteAddress ?? '';
  if (!/^(::ffff:)?127\.|^::1$/.test(address)) throw new HttpRefusal(403, 'only from this machine');
  if (request.headers.authorization !== `Bearer ${place.controlToken}`) {
    throw new HttpRefusal(401, 'expected Authorization: Bearer with the control token');
  }
  if (`${request.method} ${path}` !== 'POST jobs') throw new HttpRefusal(404);
  const spec = parseJson(await readBody(request, MAX_BODY_BYTES)) as JobSpec;
  const result = describeJob(await submitTo(place, spec));
  sendText(response, { status: 200, headers: { 'content-type': 'application/json' }, body: JSON.stringify(result) });
}

function parseJson(body: Buffer): unknown {
  if (body.length === 0) return undefined;
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    throw new HttpRefusal(400, 'expected JSON in the body');
  }
}

/** A job as JSON: its paths, those of its tasks, and the state of their processes. */
export function describeJob(job: SubmittedJob) {
  return {
    jobId: job.jobId,
    directory: job.directory,
    tasks: job.tasks.map(({ taskId, specificationId, directory, files, state }) => ({
      ...{ taskId, specificationId, directory, files, state },
    })),
  };
}

/** The JSON of a job. */
export type JobDescription = ReturnType<typeof describeJob>;
