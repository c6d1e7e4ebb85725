/** The five operations of the file-transfer service (docs/interface.md 4.1) over SOAP 1.1 or 1.2. */
import type { Grant, PartRequest, Parts, Remote, Session, Sink, TransferMethod } from '../../agent/ports.ts';
import { JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import type { Secrets } from '../../redact.ts';
import { holdParts } from '../content/held-parts.ts';
import type { Lifted } from '../content/lifted.ts';
import { ListedNames } from '../content/listed-names.ts';
import type { SpillPlace } from '../content/spill-file.ts';
import { StreamedFile } from '../content/streamed-file.ts';
import type { HttpClient } from '../http/http-client.ts';
import { type CallEvent, SessionCalls } from '../session-calls.ts';
import {
  authorizationOf,
  type Fields,
  requestFields,
  taskFileOffsets,
  textArgument,
  transferMethodArgument,
} from './arguments.ts';
import type { Operation, SoapVersion } from './contract.ts';
import { Envelopes } from './envelope.ts';
import { entriesOf, resultOf, transferMethodOf } from './results.ts';
import { Transport } from './transport.ts';

export interface SoapRemoteOptions {
  /** {service_namespace}: the actions are this followed directly by the operation. */
  readonly namespace: string;
  /** {file_transfer_url}. */
  readonly url: string;
  readonly soapVersion: SoapVersion;
  readonly http: HttpClient;
  readonly session: Session;
  /** What is sent and what is given goes into them, and nothing of them into a message. */
  readonly secrets: Secrets;
  /** Where texts go that are too long for the memory. */
  readonly spill: SpillPlace;
  /** Bytes of an answer besides the content of files. */
  readonly maxSmallAnswerBytes: number;
  /** Whether words of a service say, in its own way, that a session is lost. */
  readonly isSessionFault: (words: string) => boolean;
  readonly onCall: (event: CallEvent) => void;
}

/** What distinguishes the calls. */
interface Call {
  readonly operation: Operation;
  readonly jobId: JobId;
  readonly fields: Fields;
  readonly lifted?: Lifted;
  /** The answer may take as long as it makes progress. */
  readonly bulky?: boolean;
  readonly signal: AbortSignal;
}

export class SoapRemote implements Remote {
  readonly #options: SoapRemoteOptions;
  readonly #calls: SessionCalls;
  readonly #envelopes: Envelopes;
  readonly #transport: Transport;

  /** @throws JobtailError config for a namespace that no request can carry */
  constructor(options: SoapRemoteOptions) {
    if (!/^[!#-%'-;=?-[\]_a-z~]+$/.test(options.namespace)) {
      throw new JobtailError('config', 'service.namespace holds characters that no namespace can hold', {
        hint: 'copy the targetNamespace from the WSDL of the service',
      });
    }
    this.#options = options;
    this.#calls = new SessionCalls(options);
    this.#envelopes = new Envelopes(options);
    this.#transport = new Transport(options);
  }

  async readParts(jobId: JobId, wanted: readonly PartRequest[], signal: AbortSignal): Promise<Parts> {
    const operation = 'DownloadPartsOfJobFilesFromCluster';
    const fields = { taskFileOffsets: taskFileOffsets(wanted) };
    return await holdParts(wanted, this.#options.spill, async (lifted) => {
      const response = await this.#call({ operation, jobId, fields, lifted, bulky: true, signal });
      return entriesOf(resultOf(operation, response), lifted.texts);
    });
  }

  async listChangedFiles(jobId: JobId, signal: AbortSignal): Promise<readonly string[]> {
    const operation = 'ListChangedFilesForJob';
    const listed = new ListedNames(this.#options.maxSmallAnswerBytes);
    const response = await this.#call({ operation, jobId, fields: {}, lifted: listed, signal });
    resultOf(operation, response);
    return listed.names;
  }

  async downloadFile(jobId: JobId, path: string, sink: Sink, signal: AbortSignal): Promise<number> {
    const file = new StreamedFile(sink, signal);
    const fields = { relativeFilePath: textArgument(path, 'file name') };
    const operation = 'DownloadFileFromCluster';
    await this.#call({ operation, jobId, fields, lifted: file, bulky: true, signal }).catch((error: unknown) => {
      throw file.failure === undefined ? error : file.failure.error;
    });
    if (file.length !== undefined) return file.length;
    throw new JobtailError('not-found', 'the service has no such file', {
      hint: 'it may have been removed since it was listed',
    });
  }

  async getTransferMethod(jobId: JobId, signal: AbortSignal): Promise<TransferMethod | null> {
    const operation = 'GetFileTransferMethod';
    const response = await this.#call({ operation, jobId, fields: {}, signal });
    const method = transferMethodOf(resultOf(operation, response));
    this.#keepSecret(method);
    return method;
  }

  async endTransfer(jobId: JobId, method: TransferMethod, signal: AbortSignal): Promise<void> {
    this.#keepSecret(method);
    const fields = { usedTransferMethod: transferMethodArgument(method) };
    await this.#call({ operation: 'EndFileTransfer', jobId, fields, signal });
  }

  #keepSecret(method: TransferMethod | null): void {
    const key = method?.credentials?.privateKey;
    if (typeof key === 'string') this.#options.secrets.add('transfer-key', key);
  }

  #call(call: Call): Promise<unknown> {
    return this.#calls.call(call.operation, (grant, count) => this.#attempt(call, grant, count), call.signal);
  }

  /**
   * Writes an envelope, sends it, and reads the one that comes back: the content of the response element; undefined if it
   * was not read to its end.
   */
  async #attempt(call: Call, grant: Grant, count: { bytes: number }): Promise<unknown> {
    const { operation, jobId, fields, lifted, bulky, signal } = call;
    const headers = { 'user-agent': 'jobtail', ...authorizationOf(grant) };
    const envelope = await this.#envelopes.write(operation, requestFields(jobId, fields, grant));
    const rest = await this.#transport.send({
      ...{ operation, lifted, count, signal },
      envelope: { ...envelope, headers: { ...envelope.headers, ...headers } },
      totalMs: bulky === true ? Number.POSITIVE_INFINITY : undefined,
    });
    return rest && (await this.#envelopes.read(operation, rest));
  }
}
