/** The description (WSDL) that most servers publish. */
import { HttpClient, type HttpWay, readBody } from '../../remote/http/http-client.ts';

const LIMIT_MS = 5_000;
const MAX_BYTES = 4 * 1024 * 1024;

/** Excludes characters that no namespace contains. */
const NAMESPACE = /\stargetNamespace="([!#-%'-;=?-[\]_a-z~]+)"/;
const OF_FILES = 'DownloadPartsOfJobFilesFromCluster';
const OF_JOBS = 'ListJobsForCurrentUser';

export async function namespaceOf(url: string, signal: AbortSignal, way: HttpWay = {}): Promise<string | undefined> {
  return namespaceIn(await descriptionOf(url, signal, way));
}

export async function serviceIn(url: string, signal: AbortSignal): Promise<string | undefined> {
  const text = await descriptionOf(url, signal, {});
  return text?.includes(OF_FILES) ? namespaceIn(text) : undefined;
}

/** The address of JobManagementWs, if it describes itself beside the file transfer (docs/dev/servers.md 10.1). */
export async function jobsUrlBeside(
  { fileTransferUrl, namespace }: { readonly fileTransferUrl: string; readonly namespace: string },
  signal: AbortSignal,
  way: HttpWay = {},
): Promise<string | undefined> {
  if (!URL.canParse(fileTransferUrl)) return undefined;
  const url = new URL(fileTransferUrl);
  // A name such as FileTransferWs.asmx keeps its extension.
  url.pathname = url.pathname.replace(/FileTransferWs|[^/.]*(?=\.\w+$)|[^/]*$/, 'JobManagementWs');
  url.search = '';
  const text = await descriptionOf(url.href, signal, way);
  const found = namespaceIn(text);
  return text?.includes(OF_JOBS) && (found === undefined || found === namespace) ? url.href : undefined;
}

const namespaceIn = (description: string | undefined) => NAMESPACE.exec(description ?? '')?.[1];

async function descriptionOf(url: string, signal: AbortSignal, way: HttpWay): Promise<string | undefined> {
  const answer = await answerOf(`${url}?wsdl`, signal, way);
  return answer?.status === 200 ? answer.text : undefined;
}

interface PageAnswer {
  readonly status: number;
  readonly text: string;
  /** The address that a redirect leads to. */
  readonly redirect: string | undefined;
}

type Sent = HttpWay & { readonly body?: { readonly contentType: string; readonly text: string } };

/** The response to a GET, or to a POST of `body`; undefined without a response. */
export const answerOf = (url: string, signal: AbortSignal, sent: Sent = {}): Promise<PageAnswer | undefined> =>
  requestAnswer(url, signal, sent).catch(() => undefined);

/** @throws JobtailError without a response */
export async function requestAnswer(
  url: string,
  signal: AbortSignal,
  { body, ...way }: Sent = {},
): Promise<PageAnswer> {
  const limits = { connectMs: LIMIT_MS, headersMs: LIMIT_MS, idleMs: LIMIT_MS, totalMs: LIMIT_MS };
  const client = new HttpClient({ limits, ...way });
  try {
    const request =
      body === undefined
        ? { method: 'GET' as const, headers: {} }
        : { method: 'POST' as const, headers: { 'Content-Type': body.contentType }, body: body.text };
    const answer = await client.request({ ...request, url, signal });
    const text = (await readBody(answer, MAX_BYTES)).toString('utf8');
    const { status, location = '' } = answer;
    const isRedirect = status >= 300 && status < 400 && location !== '' && URL.canParse(location, url);
    return { status, text, redirect: isRedirect ? new URL(location, url).href : undefined };
  } finally {
    await client.close();
  }
}

/** Undefined for a text that is no JSON. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
