/** `agent sync` of a job where nothing is new: start, sign-in, the look for more, and the proof of what is here. */
import fs from 'node:fs';
import path from 'node:path';
import { Sandbox } from '../simulator/sandbox.ts';
import { LIVE_FILE_NAMES } from '../src/job.ts';
import { textOf } from './growth.ts';
import type { Figures, Measurement, Place, Prepared } from './measurement.ts';
import { OUR_NODE_ARGS, run, runProcess } from './processes.ts';
import { startRelay } from './relay.ts';

const AGENT = path.join(import.meta.dirname, '../../dist/cli/main.js');
const LOG_BYTES = 100_000;
const RESULTS = 10;
const ROUND_TRIP_MS = 100;

interface Synced {
  readonly sandbox: Sandbox;
  readonly jobId: string;
  readonly configFile: string;
}

/** A job with four live files and some results, all of which are here. */
async function syncedJob(sandbox: Sandbox, { directory }: Place): Promise<Synced> {
  const { jobId, tasks } = await sandbox.submitJob({ tasks: [{}] });
  const [task] = tasks;
  if (task === undefined) throw new Error('the job has no task');
  for (const name of LIVE_FILE_NAMES) fs.writeFileSync(task.files[name], textOf(0, LOG_BYTES));
  for (let at = 0; at < RESULTS; at += 1)
    fs.writeFileSync(path.join(task.directory, `${at}.dat`), textOf(at, LOG_BYTES));
  const [user] = sandbox.users;
  const at = (name: string) => path.join(directory, name);
  fs.writeFileSync(at('password'), user?.password ?? '', { mode: 0o600 });
  const { baseUrl, fileTransferUrl, namespace } = sandbox;
  const config = {
    service: { protocol: 'soap', fileTransferUrl, namespace, baseUrl, requestsPerMinute: 1_000_000 },
    auth: { method: 'password', username: user?.username, passwordFile: at('password') },
    mirror: { directory: at('mirror') },
    state: { directory: at('state') },
    results: { transfer: 'service' },
  };
  fs.writeFileSync(at('config.yaml'), JSON.stringify(config));
  const synced = { sandbox, jobId, configFile: at('config.yaml') };
  await run(process.execPath, [AGENT, 'watch', jobId, '--task', task.taskId, '--no-wait', '-c', synced.configFile]);
  await sync(synced);
  return synced;
}

/** It ends with 0 if all was proven. */
function sync({ jobId, configFile }: Synced): Promise<Figures> {
  return runProcess(process.execPath, [...OUR_NODE_ARGS, AGENT, 'sync', jobId, '-c', configFile]);
}

/** The same on a long wire, from another configuration for the same state. */
async function syncOverWire(synced: Synced): Promise<Figures> {
  const { port } = new URL(synced.sandbox.baseUrl);
  const relay = await startRelay(Number(port), { roundTripMs: ROUND_TRIP_MS });
  const configFile = synced.configFile.replace(/yaml$/, 'wire.yaml');
  const far = fs.readFileSync(synced.configFile, 'utf8').replaceAll(`:${port}`, `:${relay.port}`);
  fs.writeFileSync(configFile, far);
  try {
    await sync({ ...synced, configFile });
    const [trips, requests] = [relay.roundTrips(), relay.requests()];
    const { seconds } = await sync({ ...synced, configFile });
    return {
      seconds: seconds ?? 0,
      roundTrips: relay.roundTrips() - trips,
      requests: relay.requests() - requests,
    };
  } finally {
    await relay.close();
  }
}

export const syncOfNothing: Measurement = {
  name: 'sync-of-nothing',
  needs: [],
  goals: [
    {
      what: '`agent sync` of a job where nothing is new: 4 live files and 10 results, sign-in and proof included',
      ...{ kind: 'limit', figure: 'seconds', ours: 'agent', atMost: 0.5 },
    },
    {
      what: 'the same over a wire of 100 ms: round trips, calls beside each other counted once',
      ...{ kind: 'limit', figure: 'roundTrips', ours: 'long wire', atMost: 10 },
    },
    {
      what: 'the same: requests, each counted: a sign-in, the parts, the listing, and one for each of the 14 files',
      ...{ kind: 'limit', figure: 'requests', ours: 'long wire', atMost: 17 },
    },
  ],
  prepare: async (place): Promise<Prepared> => {
    const sandbox = await Sandbox.start({ directory: path.join(place.directory, 'cluster'), port: 0 });
    try {
      const synced = await syncedJob(sandbox, place);
      return {
        sides: { agent: () => sync(synced), 'long wire': () => syncOverWire(synced) },
        close: () => sandbox.close(),
      };
    } catch (error) {
      await sandbox.close();
      throw error;
    }
  },
};
