/** `agent init`: detects the service at an address by its responses, without a sign-in. */
import { DEFAULT_PATH, SIGN_IN_PATHS } from '../../remote/rest/contract.ts';
import { answerOf, serviceIn } from '../check/description.ts';

export interface RestService {
  readonly protocol: 'rest';
  readonly baseUrl: string;
  readonly path: string;
}

export type FoundService =
  | { readonly protocol: 'soap'; readonly fileTransferUrl: string; readonly namespace: string }
  | RestService;

export type Protocol = FoundService['protocol'];

const SOAP_NAME = 'FileTransferWs';

/**
 * The service at an address: SOAP if it describes itself there, else REST under the path of the address or under /heappe,
 * else SOAP right below it. Undefined if neither answers. `only` excludes the other protocol.
 */
export async function serviceAt(
  address: string,
  signal: AbortSignal,
  only?: Protocol,
): Promise<FoundService | undefined> {
  if (!URL.canParse(address)) return undefined;
  const { origin, pathname, search } = new URL(address);
  const path = pathname.replace(/\/+$/, '');
  const soapAt = async (url: string): Promise<FoundService | undefined> => {
    const namespace = only === 'rest' ? undefined : await serviceIn(url, signal);
    return namespace === undefined ? undefined : { protocol: 'soap', fileTransferUrl: url, namespace };
  };
  const named = await soapAt(`${origin}${path}${search}`);
  if (named !== undefined) return named;
  for (const rest of only === 'soap' ? [] : restPlaces(origin, path)) if (await speaksRest(rest, signal)) return rest;
  return await soapAt(`${origin}${path}/${SOAP_NAME}`);
}

function restPlaces(origin: string, path: string): RestService[] {
  const place = (before: string, below: string): RestService => {
    return { protocol: 'rest', baseUrl: `${origin}${before}`, path: below };
  };
  if (path.endsWith(DEFAULT_PATH)) return [place(path.slice(0, -DEFAULT_PATH.length), DEFAULT_PATH)];
  return [...(path === '' ? [] : [place('', path)]), place(path, DEFAULT_PATH), place('', DEFAULT_PATH)];
}

/**
 * Whether the REST sign-in is there. All releases refuse a request that is no JSON before the sign-in, with the reason
 * in `errors` (docs/dev/rest.md 1.1). Statuses of other paths and verbs vary, and a proxy may send them.
 */
async function speaksRest({ baseUrl, path }: RestService, signal: AbortSignal): Promise<boolean> {
  const body = { contentType: 'application/json', text: 'not JSON' };
  const answer = await answerOf(`${baseUrl}${path}/${SIGN_IN_PATHS.password}`, signal, { body });
  return answer?.status === 400 && /^\s*\{[\s\S]*"errors"\s*:\s*\{/.test(answer.text);
}

/** The address that the server redirects an address to, or a service right below it; undefined if it does not. */
export async function redirectAt(address: string, signal: AbortSignal): Promise<string | undefined> {
  const base = address.replace(/\/+$/, '');
  for (const url of [address, `${base}/${SOAP_NAME}`]) {
    const redirect = (await answerOf(`${url}?wsdl`, signal))?.redirect;
    if (redirect !== undefined) return redirect.replace(/\?wsdl\/?$/, '').replace(new RegExp(`/${SOAP_NAME}/?$`), '');
  }
  return undefined;
}
