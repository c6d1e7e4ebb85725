/** The five operations of the file-transfer service (docs/interface.md 4.1) over SOAP 1.1 or 1.2. */
import { performance } from 'node:perf_hooks';
import type {
  Grant,
  Part,
  PartRequest,
  Parts,
  Remote,
  Reserve,
  Session,
  Sink,
  TransferMethod,
} from '../../agent/ports.ts';
import { asJobtailError, type ErrorCode, JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import { Secrets } from '../../redact.ts';
import type { HttpClient } from '../http/http-client.ts';
import { HeldTexts } from './answer/content.ts';
import { EnoughRead, type Lifted } from './answer/lifted.ts';
import { ListedNames } from './answer/listed-names.ts';
import { StreamedFile } from './answer/streamed-file.ts';
import {
  authorizationOf,
  type Fields,
  requestFields,
  taskFileOffsets,
  textArgument,
  transferMethodArgument,
} from './arguments.ts';
import type { Operation } from './contract.ts';
import { SoapClient } from './envelope.ts';
import { exchange } from './exchange.ts';
import { refusalError, wordsOfFault } from './refusals.ts';
import { partsOf, resultOf, transferMethodOf } from './results.ts';

/** One request and its answer, for logs and metrics. */
export interface CallEvent {
  readonly operation: Operation;
  readonly durationMs: number;
  readonly outcome: 'ok' | ErrorCode;
  /** Bytes of the answer. */
  readonly bytes: number;
}

export interface SoapRemoteOptions {
  /** {service_namespace}: the actions are this followed directly by the operation. */
  readonly namespace: string;
  /** {file_transfer_url}. */
  readonly url: string;
  readonly soapVersion: '1.1' | '1.2';
  readonly http: HttpClient;
  readonly session: Session;
  /** What is sent and what is given goes into them, and nothing of them into a message. */
  readonly secrets?: Secrets;
  /** Where texts go that are too long for the memory. */
  readonly spillDirectory: string;
  /** What is left free there; nothing if left out. */
  readonly reserve?: Reserve;
  /** A text is held in memory up to this size; 1 MiB if left out. */
  readonly memoryBytes?: number;
  /** Bytes of an answer besides the content of files. */
  readonly maxSmallAnswerBytes: number;
  /** Whether words of a service say, in its own way, that a session is lost. */
  readonly isSessionFault?: ((words: string) => boolean) | undefined;
  readonly onCall?: (event: CallEvent) => void;
}

const DEFAULT_MEMORY_BYTES = 1024 * 1024;

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
  readonly #soap: SoapClient;
  readonly #secrets: Secrets;

  /** @throws JobtailError config for a namespace that no request can carry */
  constructor(options: SoapRemoteOptions) {
    if (!/^[!#-%'-;=?-[\]_a-z~]+$/.test(options.namespace)) {
      throw new JobtailError('config', 'service.namespace holds characters that no namespace can hold', {
        hint: 'copy the targetNamespace from the WSDL of the service',
      });
    }
    this.#options = options;
    this.#secrets = options.secrets ?? new Secrets();
    this.#soap = new SoapClient(options);
  }

  async readParts(jobId: JobId, wanted: readonly PartRequest[], signal: AbortSignal): Promise<Parts> {
    const operation = 'DownloadPartsOfJobFilesFromCluster';
    const { spillDirectory: directory, reserve, memoryBytes = DEFAULT_MEMORY_BYTES } = this.#options;
    const [only, ...others] = wanted;
    const enoughBytes = others.length === 0 ? only?.enoughBytes : undefined;
    const held = new HeldTexts({ directory, reserve, memoryBytes, enoughBytes });
    try {
      const fields = { taskFileOffsets: taskFileOffsets(wanted) };
      const response = await this.#call({ operation, jobId, fields, lifted: held, bulky: true, signal });
      if (only !== undefined && held.hasEnough) return { parts: [await beginningOf(only, held)], refused: 0 };
      return await partsOf(resultOf(operation, response), { wanted, texts: held.texts });
    } catch (error) {
      await held.discard();
      throw error;
    } finally {
      await held.close();
    }
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
    if (typeof key === 'string') this.#secrets.add('transfer-key', key);
  }

  /**
   * The content of the response element; undefined if the answer was not read to its end. A session that is lost is
   * renewed once, and the call repeated once.
   */
  async #call(call: Call): Promise<unknown> {
    const { session } = this.#options;
    const grant = await session.current(call.signal);
    try {
      return await this.#attempt(call, grant);
    } catch (error) {
      if (!(error instanceof JobtailError && error.policy.signIn)) throw error;
      session.lost(grant);
    }
    return await this.#attempt(call, await session.current(call.signal));
  }

  /** One request and its answer. */
  async #attempt(call: Call, grant: Grant): Promise<unknown> {
    const count = { bytes: 0 };
    const startedMs = performance.now();
    const report = (outcome: CallEvent['outcome']) =>
      this.#options.onCall?.({
        operation: call.operation,
        durationMs: performance.now() - startedMs,
        outcome,
        bytes: count.bytes,
      });
    try {
      const response = await this.#exchange(call, grant, count);
      report('ok');
      return response;
    } catch (thrown) {
      if (thrown instanceof EnoughRead) {
        report('ok');
        return undefined;
      }
      const error = this.#secrets.hideIn(asJobtailError(thrown));
      report(error.code);
      throw error;
    }
  }

  async #exchange(call: Call, grant: Grant, count: { bytes: number }): Promise<unknown> {
    const { operation, jobId, fields, lifted, bulky, signal } = call;
    const { url, namespace, http, soapVersion, maxSmallAnswerBytes, isSessionFault } = this.#options;
    this.#secrets.add('session', grant.kind === 'session' ? grant.code : grant.token);
    const refused = { operation, secrets: this.#secrets, isSessionFault };
    const headers = {
      accept: soapVersion === '1.2' ? 'application/soap+xml' : 'text/xml',
      'user-agent': 'jobtail',
      ...authorizationOf(grant),
    };
    const { sent, response, fault } = await this.#soap.invoke({
      operation,
      args: requestFields(jobId, fields, grant),
      send: (xml, soapHeaders) =>
        exchange(xml, {
          ...refused,
          ...{ http, url, namespace, lifted, signal, count },
          headers: { ...soapHeaders, ...headers },
          maxBytes: maxSmallAnswerBytes,
          totalMs: bulky === true ? Number.POSITIVE_INFINITY : undefined,
        }),
    });
    const { status, isFault, retryAfterMs } = sent;
    if (!isFault && status === 200) return response;
    throw refusalError({ status, isFault, retryAfterMs, words: wordsOfFault(fault) }, refused);
  }
}

/** The text alone: what names its file would have come behind it. */
async function beginningOf({ taskId, file, offset }: PartRequest, held: HeldTexts): Promise<Part> {
  return { taskId, file, offset, content: await held.endEarly(), relativePath: null, isBeginning: true };
}
