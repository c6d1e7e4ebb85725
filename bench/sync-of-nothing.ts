/** `agent sync` of a job where nothing is new: start, sign-in, the look for more, and the proof of what is here. */
import fs from 'node:fs';
import path from 'node:path';
import { Sandbox } from '../simulator/sandbox.ts';
import type { RecordedCall } from '../simulator/traffic.ts';
import { LIVE_FILE_NAMES } from '../src/job.ts';
import { actionOf } from '../src/remote/soap/contract.ts';
import { textOf } from './growth.ts';
import type { Figures, Measurement, Place, Prepared } from './measurement.ts';
import { OUR_NODE_ARGS, run, runProcess } from './processes.ts';
import { startRelay } from './relay.ts';

const AGENT = path.join(import.meta.dirname, '../../dist/cli/main.js');
const LOG_BYTES = 100_000;
const RESULTS = 10;
const ROUND_TRIP_MS = 100;
const SIGN_IN = '/service/UserAndLimitationManagement/AuthenticateUserAndPassword';

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

/** The same calls one after the other, by a shell and `curl`. */
function curlLoop({ sandbox }: Synced, calls: readonly RecordedCall[]): () => Promise<Figures> {
  const { baseUrl, fileTransferUrl, namespace } = sandbox;
  const [user] = sandbox.users;
  const credentials = JSON.stringify({ Credentials: { Username: user?.username, Password: user?.password } });
  const json = `-H 'accept: application/json' -H 'content-type: application/json' --data '${credentials}'`;
  const signIn = `code=$(curl -sf ${json} ${baseUrl}${SIGN_IN} | tr -d '"')`;
  const lines = calls.map((call) => {
    const headers = `-H 'content-type: text/xml; charset=utf-8' -H 'SOAPAction: "${actionOf(namespace, call.operation)}"'`;
    return `printf '${requestOf(call, namespace)}' "$code" | curl -sf ${headers} --data-binary @- -o /dev/null ${fileTransferUrl}`;
  });
  return () => runProcess('sh', ['-ec', [signIn, ...lines].join('\n')]);
}

/** With `%s` for the session code. */
function requestOf({ operation, jobId, entries, path: file }: RecordedCall, namespace: string): string {
  const offsets = (entries ?? []).map((entry) => {
    const fields = Object.entries(entry ?? {}).map(([name, value]) => `<${name}>${value}</${name}>`);
    return `<TaskFileOffsetExt>${fields.join('')}</TaskFileOffsetExt>`;
  });
  const fields =
    (entries === undefined ? '' : `<taskFileOffsets>${offsets.join('')}</taskFileOffsets>`) +
    (file === undefined ? '' : `<relativeFilePath>${file}</relativeFilePath>`);
  const body = `<submittedJobInfoId>${jobId}</submittedJobInfoId>${fields}<sessionCode>%s</sessionCode>`;
  return `<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"><soap:Body><${operation} xmlns="${namespace}">${body}</${operation}></soap:Body></soap:Envelope>`;
}

export const syncOfNothing: Measurement = {
  name: 'sync-of-nothing',
  needs: ['curl'],
  goals: [
    {
      what: '`agent sync` of a job where nothing is new: 4 live files and 10 results, sign-in and proof included',
      ...{ kind: 'limit', figure: 'seconds', ours: 'agent', atMost: 0.5 },
    },
    {
      what: 'the same, against the same calls by `curl`, a process each',
      ...{ kind: 'ratio', figure: 'seconds', ours: 'agent', peer: 'curl', atMost: 2 },
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
      const before = sandbox.calls.length;
      await sync(synced);
      const calls = sandbox.calls.slice(before);
      place.say(`${calls.length} calls: ${[...new Set(calls.map(({ operation }) => operation))].join(', ')}`);
      return {
        sides: {
          agent: () => sync(synced),
          curl: curlLoop(synced, calls),
          'long wire': () => syncOverWire(synced),
        },
        close: () => sandbox.close(),
      };
    } catch (error) {
      await sandbox.close();
      throw error;
    }
  },
};
