/**
 * The other side for many results: a client that keeps its connections, sends the same requests, and reads the answers
 * without a look at them.
 *
 *     bare-client.js URL CONCURRENCY COUNT
 *
 * Prints seconds and processor time of the calls as JSON.
 */
import { performance } from 'node:perf_hooks';
import { Agent, request } from 'undici';
import { actionOf } from '../../src/remote/soap/contract.ts';
import { smallNames } from '../service/answers.ts';
import { NAMESPACE } from '../service/job.ts';
import { requestOf } from '../service/process.ts';

const OPERATION = 'DownloadFileFromCluster';
const [url = '', concurrency = '1', count = '1'] = process.argv.slice(2);
const connections = Number(concurrency);
const dispatcher = new Agent({ connections });
const headers = {
  'content-type': 'text/xml; charset=utf-8',
  SOAPAction: `"${actionOf(NAMESPACE, OPERATION)}"`,
};
const names = smallNames(Number(count)).values();
const work = async () => {
  for (const name of names) {
    const body = requestOf(OPERATION, `<relativeFilePath>${name}</relativeFilePath>`);
    const answer = await request(url, { method: 'POST', headers, body, dispatcher });
    await answer.body.dump({ limit: Number.POSITIVE_INFINITY });
  }
};
const [cpu, startedMs] = [process.cpuUsage(), performance.now()];
await Promise.all(Array.from({ length: connections }, work));
const seconds = (performance.now() - startedMs) / 1000;
const { user, system } = process.cpuUsage(cpu);
await dispatcher.close();
process.stdout.write(`${JSON.stringify({ seconds, cpuSeconds: (user + system) / 1e6 })}\n`);
