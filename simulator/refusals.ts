/** What the simulated service throws instead of a result. Neither leaves the sandbox: both become an answer. */

/** Who is to blame, in the words of SOAP. */
export type FaultCode = 'client' | 'server';

/** Answered as a SOAP fault in the version that was asked, or as a problem of the REST release. */
export class ServiceFault extends Error {
  override readonly name = 'ServiceFault';
  readonly code: FaultCode;

  constructor(text: string, code: FaultCode = 'server') {
    super(text);
    this.code = code;
  }
}

/** Answered as a plain HTTP status. */
export class HttpRefusal extends Error {
  override readonly name = 'HttpRefusal';
  readonly status: number;
  readonly text: string;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, text = '', headers: Readonly<Record<string, string>> = {}) {
    super(`HTTP ${status}`);
    this.status = status;
    this.text = text;
    this.headers = headers;
  }
}
