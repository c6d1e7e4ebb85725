/** The namespace of a service, from the description that most servers hand out. */
import { HttpClient, type HttpClientOptions, readBody } from '../../remote/http/http-client.ts';

const LIMIT_MS = 5_000;
const MOST_BYTES = 4 * 1024 * 1024;

/** As it may stand there: what no namespace can hold is none. */
const NAMESPACE = /\stargetNamespace="([!#-%'-;=?-[\]_a-z~]+)"/;

/** Undefined if the service does not say. */
export async function namespaceOf(
  url: string,
  signal: AbortSignal,
  way: Omit<HttpClientOptions, 'limits'> = {},
): Promise<string | undefined> {
  const limits = { connectMs: LIMIT_MS, headersMs: LIMIT_MS, idleMs: LIMIT_MS, totalMs: LIMIT_MS };
  const client = new HttpClient({ limits, ...way });
  try {
    const answer = await client.request({ method: 'GET', url: `${url}?wsdl`, headers: {}, signal });
    const text = (await readBody(answer, MOST_BYTES)).toString('utf8');
    return answer.status === 200 ? NAMESPACE.exec(text)?.[1] : undefined;
  } catch {
    return undefined;
  } finally {
    await client.close();
  }
}
