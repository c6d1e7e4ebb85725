/**
 * The control interface below `/sandbox/`, for tests and people whose sandbox is another process: JSON over HTTP, from
 * this machine only and with the control token only, for a job is any program.
 */
import type { SubmittedJob } from './cluster/cluster.ts';
import type { JobSpec } from './cluster/specs.ts';
import { type Exchange, readBody, sendText } from './exchange.ts';
import { changeHabits, type SandboxHabits } from './habits.ts';
import { type SandboxPlace, submitTo } from './place.ts';
import { HttpRefusal } from './refusals.ts';

const MAX_BODY_BYTES = 4 * 1024 * 1024;

type Action = (place: SandboxPlace, body: unknown) => unknown;

/** What can be asked: `METHOD path`. */
const ACTIONS: Readonly<Record<string, Action>> = {
  'POST jobs': async (place, body) => describeJob(await submitTo(place, body as JobSpec)),
  'POST habits': ({ habits }, body) => {
    changeHabits(habits, body as Partial<SandboxHabits>);
    return habits;
  },
  'GET keys': ({ keys }) => keys.open,
};

/** Handles one request; `path` is what follows `/sandbox/`. */
export async function handleControl(exchange: Exchange, path: string, place: SandboxPlace): Promise<void> {
  const { request, response } = exchange;
  const address = request.socket.remoteAddress ?? '';
  if (!/^(::ffff:)?127\.|^::1$/.test(address)) throw new HttpRefusal(403, 'only from this machine');
  if (request.headers.authorization !== `Bearer ${place.controlToken}`) {
    throw new HttpRefusal(401, 'expected Authorization: Bearer with the control token');
  }
  const action = ACTIONS[`${request.method} ${path}`];
  if (action === undefined) throw new HttpRefusal(404);
  const result = await action(place, parseJson(await readBody(request, MAX_BODY_BYTES)));
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

/** A job as JSON: its paths, its state, and those of its tasks and of their processes. */
export function describeJob(job: SubmittedJob) {
  return {
    jobId: job.jobId,
    owner: job.owner,
    name: job.name,
    jobState: job.state,
    directory: job.directory,
    submitted: job.submittedAtNs !== undefined,
    tasks: job.tasks.map(({ taskId, specificationId, name, run, directory, files, pid, state, exit }) => ({
      taskId,
      specificationId,
      name,
      taskState: run.state,
      directory,
      files,
      pid: pid ?? null,
      state,
      exit: exit ?? null,
    })),
  };
}

/** The JSON of a job. */
export type JobDescription = ReturnType<typeof describeJob>;
