/**
 * The other side: the `soap` package as its documentation shows it.
 *
 *     soap-package.js URL NAME DIRECTORY
 *
 * Prints length and hash, and the seconds of the call: its start is not among them, as on our side.
 */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { createClientAsync } from 'soap';
import { wsdlOf } from '../../src/remote/soap/contract.ts';
import { JOB_ID, NAMESPACE } from '../service/job.ts';

const [url = '', relativeFilePath = '', directory = ''] = process.argv.slice(2);
const client = await createClientAsync(wsdlOf({ namespace: NAMESPACE, url }), { endpoint: url });
const startedMs = performance.now();
const request = { submittedJobInfoId: JOB_ID, relativeFilePath, sessionCode: 'bench' };
const [answer] = (await client['DownloadFileFromClusterAsync'](request)) as [{ DownloadFileFromClusterResult: string }];
const bytes = Buffer.from(answer.DownloadFileFromClusterResult, 'base64');
const sha256 = createHash('sha256').update(bytes).digest('hex');
fs.writeFileSync(path.join(directory, 'package.dat'), bytes, { flush: true });
const seconds = (performance.now() - startedMs) / 1000;
process.stdout.write(`${bytes.length} ${sha256}; ${seconds}\n`);
