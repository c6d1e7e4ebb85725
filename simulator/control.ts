/**
 * The control interface below `/sandbox/`, for tests and people whose sandbox is another process: JSON over HTTP, from
 * this machine only and with the control token only, for a job is any program.
 */
import type { SubmittedJob } from './cluster/cluster.ts';
import type { JobSpec, TaskSpec } from './cluster/specs.ts';
import { type Exchange, readBody, sendText } from './exchange.ts';
import type { FaultRule } from './faults.ts';
import { changeHabits, type SandboxHabits } from './habits.ts';
import { countersOf, type SandboxPlace, submitTo } from './place.ts';
import { HttpRefusal } from './refusals.ts';
import type { SandboxUser } from './signin/sessions.ts';

const MAX_BODY_BYTES = 4 * 1024 * 1024;

type Action = (place: SandboxPlace, body: unknown, path: readonly string[]) => unknown;

/** What `POST jobs/ID/` and one of these words does; `POST jobs/ID/tasks` gives it one more task. */
const JOB_CHANGES: Readonly<Record<string, (job: SubmittedJob, details: { readonly message?: string }) => unknown>> = {
  submit: (job) => job.submit(),
  finish: (job) => job.end('Finished'),
  /** With the message of its tasks. */
  fail: (job, { message }) => job.end('Failed', message),
  requeue: (job) => job.requeue(),
};

/** What can be asked: `METHOD first-part-of-the-path`. */
const ACTIONS: Readonly<Record<string, Action>> = {
  'POST jobs': async (place, body, [id, verb]) => {
    if (id === undefined) return describeJob(await submitTo(place, body as JobSpec));
    const job = jobOf(place, id);
    const change = JOB_CHANGES[verb ?? ''];
    if (verb === 'tasks') await place.cluster.addTask(job, body as TaskSpec);
    else if (change !== undefined) await change(job, body ?? {});
    else throw new HttpRefusal(404);
    return describeJob(job);
  },
  'GET jobs': (place, _body, [id]) =>
    id === undefined ? place.cluster.jobs.map(describeJob) : describeJob(jobOf(place, id)),
  'POST habits': ({ habits }, body) => {
    changeHabits(habits, body as Partial<SandboxHabits>);
    return habits;
  },
  'GET faults': ({ faults }) => faults.list,
  'POST faults': ({ faults }, body) => {
    faults.add(body as FaultRule);
    return faults.list;
  },
  'DELETE faults': ({ faults }) => {
    faults.clear();
    return [];
  },
  'DELETE sessions': ({ sessions }) => {
    sessions.expire();
    return {};
  },
  'POST users': ({ users }, body) => {
    const change = body as SandboxUser;
    const user = users.find(({ username }) => username === change.username);
    if (user === undefined) users.push(change);
    else Object.assign(user, change);
    return {};
  },
  'GET counters': countersOf,
  'GET calls': ({ traffic }) => traffic.recent,
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
  const [first = '', ...rest] = path.split('/').map(decodeURIComponent);
  const action = ACTIONS[`${request.method} ${first}`];
  if (action === undefined) throw new HttpRefusal(404);
  const result = await action(place, parseJson(await readBody(request, MAX_BODY_BYTES)), rest);
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

function jobOf({ cluster }: SandboxPlace, id: string): SubmittedJob {
  const job = cluster.job(id);
  if (job === undefined) throw new HttpRefusal(404, `no job ${id}`);
  return job;
}

/** A job as JSON: its paths, its state, and those of its tasks and of their processes. */
function describeJob(job: SubmittedJob) {
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
