/** The contract against a server that shares no code with ours, and what only this one can be reported to answer. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Grant, TransferMethod } from '../../../src/agent/ports/server.ts';
import { LIVE_FILE_NAMES } from '../../../src/job.ts';
import { SERVICES, wsdlOf } from '../../../src/remote/soap/contract.ts';
import { failureOf } from '../../support/errors.ts';
import { needs } from '../../support/needs.ts';
import { taskId as taskIdOf } from '../../support/wire-remote.ts';
import { contractOf } from '../contract.ts';
import { download, makePlace, type Place, type PlaceOptions, signal } from '../contract-place.ts';
import { type PhpJob, PhpService } from '../php-service.ts';
import { validateRequests } from '../python.ts';
import { LONG_MAX, LONG_MIN, soapDialect, VERSIONS, type Version } from '../service.ts';
import { HOSTILE_NAMES, HOSTILE_TEXTS, IMPOSSIBLE_NAMES } from '../texts.ts';
import { asSent } from '../transfer-contract.ts';

const SOAP_ENVELOPES = {
  '1.1': 'http://schemas.xmlsoap.org/soap/envelope/',
  '1.2': 'http://www.w3.org/2003/05/soap-envelope',
} as const;

/** The job, the other fields, and the end of a request. */
const JOB_FIRST = /(<submittedJobInfoId>.*?<\/submittedJobInfoId>)(.*)(<\/\w+><\/soap:Body>)/s;

const ABSENT = { serverHostname: null, sharedBasepath: null, protocol: null, credentials: null };
const NO_CREDENTIALS = { username: null, privateKey: null, publicKey: null };

const METHODS: readonly TransferMethod[] = [
  ABSENT,
  { ...ABSENT, protocol: 'SftpScp' },
  { ...ABSENT, protocol: 'NetworkShare', sharedBasepath: '/mnt' },
  { ...ABSENT, credentials: { ...NO_CREDENTIALS, publicKey: 'ssh-rsa A' } },
  { ...ABSENT, credentials: { ...NO_CREDENTIALS, username: 'u', privateKey: 'p' } },
  {
    serverHostname: '',
    sharedBasepath: '',
    protocol: 'SftpScp',
    credentials: { username: '', privateKey: '', publicKey: '' },
  },
  ...HOSTILE_TEXTS.map(
    (text): TransferMethod => ({
      serverHostname: text,
      sharedBasepath: `${text}/`,
      protocol: 'SftpScp',
      credentials: { username: `u${text}`, privateKey: `${text}p${text}`, publicKey: text },
    }),
  ),
];

describe("PHP's SoapServer", needs('php', 'php-soap'), () => {
  contractOf('as a server', () => PhpService.start());

  describe('with answers of its own', () => {
    let service: PhpService;
    beforeAll(async () => {
      service = await PhpService.start();
    });
    afterAll(async () => {
      await service?.close();
    });
    describe.each(VERSIONS)('over SOAP %s', (version) => {
      const serve: ServePhp = (job, options) => makePlace(service, soapDialect(version), job, options);
      ownAnswers(serve);
      requestsAsTheyArrive(serve, version);
    });
  });
});

type ServePhp = (job: PhpJob, options?: PlaceOptions) => Promise<Place<PhpService>>;

function ownAnswers(serve: ServePhp): void {
  test('any method is reported as it is, and ended as it was reported', async () => {
    for (const method of METHODS) {
      const answers = { GetFileTransferMethod: { GetFileTransferMethodResult: method }, EndFileTransfer: {} };
      const { remote, jobId, understood } = await serve({ jobId: '501', answers });
      expect(await remote.getTransferMethod(jobId, signal)).toEqual(method);
      await remote.endTransfer(jobId, method, signal);
      await understood('EndFileTransfer', { usedTransferMethod: asSent(method) });
    }
  });
}

function requestsAsTheyArrive(serve: ServePhp, version: Version): void {
  /** Calls every operation, with all that its request can hold and with as little as possible. */
  async function callAll(grant: Grant['kind']): Promise<Place<PhpService>> {
    const answers = Object.fromEntries(SERVICES.FileTransferWs.map((operation) => [operation, {}]));
    const place = await serve({ jobId: LONG_MAX, answers }, { grant });
    const { remote, jobId } = place;
    await remote.getTransferMethod(jobId, signal);
    for (const method of METHODS) await remote.endTransfer(jobId, method, signal);
    const wanted = LIVE_FILE_NAMES.flatMap((file) =>
      [LONG_MIN, LONG_MAX].map((id) => ({ taskId: taskIdOf(id), file, offset: Number.MAX_SAFE_INTEGER })),
    );
    await remote.readParts(jobId, wanted, signal);
    await remote.readParts(jobId, [], signal);
    await remote.listChangedFiles(jobId, signal);
    for (const name of [...HOSTILE_NAMES, ...IMPOSSIBLE_NAMES]) {
      expect((await failureOf(download(place, name))).code).toBe('not-found');
    }
    return place;
  }

  test('requests name their action as their version of SOAP wants it', async () => {
    const { service } = await callAll('session');
    const calls = await service.recorded();
    expect(new Set(calls.map(({ operation }) => operation))).toEqual(new Set(SERVICES.FileTransferWs));
    for (const { operation, contentType, soapAction, raw } of calls) {
      const action = `${service.namespace}${operation}`;
      const heads = {
        '1.1': ['text/xml; charset=utf-8', `"${action}"`],
        '1.2': [`application/soap+xml; charset=utf-8; action="${action}"`, null],
      };
      expect([contentType, soapAction]).toEqual(heads[version]);
      expect(raw).toContain(`="${SOAP_ENVELOPES[version]}"`);
    }
  });

  describe('by the schema as libxml2 reads it', needs('php', 'php-soap', 'lxml'), () => {
    test.each(['session', 'bearer'] as const)('requests with a %s are valid', async (grant) => {
      const { service } = await callAll(grant);
      const wsdl = wsdlOf(service);
      const requests = (await service.recorded()).map(({ raw }) => raw);
      expect(validateRequests(wsdl, requests).filter((wrong) => wrong !== null)).toEqual([]);
      // It would have noticed: the job at the end, where it does not belong, or not at all.
      const jobLast = requests.map((raw) => raw.replace(JOB_FIRST, grant === 'session' ? '$2$1$3' : '$2$3'));
      expect(validateRequests(wsdl, jobLast).filter((wrong) => wrong === null)).toEqual([]);
    });
  });
}
