/**
 * The failures of the REST interface as one table: status, title and words, with the release from which on they are so
 * (docs/dev/rest.md 4.2, 4.3). Seen are 2.0, 3.1, 4.3, 5.0 and 6.3; the others were read.
 */
import { type ReleaseName, type Row, valueAt } from './releases.ts';

/** Failures that the releases answer differently. */
export type FailureKind =
  | 'sessionUnknown'
  | 'sessionExpired'
  | 'wrongSecret'
  | 'unknownUser'
  | 'invalid'
  | 'nullList'
  | 'noSuchJob'
  | 'noSuchJobInfo'
  | 'foreignJob'
  | 'noSuchFile'
  | 'unreadableFile'
  | 'emptyPath'
  | 'unexpected'
  | 'external';

interface Wording {
  readonly status: number;
  /** Of a problem with a detail; the other releases have none. */
  readonly title: string;
  /** `{0}` and `{1}` stand for what the failure names. */
  readonly text: string;
}

const wording = (status: number, title: string, text: string): Wording => ({ status, title, text });
const early = (text: string) => wording(400, '', text);
const titled = (text: string) => wording(500, '', text);

const EARLY_UNEXPECTED = early(
  "Exception of type 'HEAppE.BusinessLogicTier.Logic.UserAndLimitationManagement.Exceptions.InternalMiddlewareException' was thrown.",
);
const UNEXPECTED = wording(500, 'Problem', 'Problem occured! Contact the administrators.');
const UNEXPECTED_EVER: Row<Wording> = {
  '2.0': EARLY_UNEXPECTED,
  '4.0': titled(EARLY_UNEXPECTED.text),
  '4.2.0': UNEXPECTED,
};

const NOT_PRESENT = "Session code '{0}' is not present in the HEAppE.";
const EXPIRED = "Session code '{0}' already expired at '{1}'.";
const SESSION_TITLE = 'Session Code Authentication Problem';
const WRONG_SECRET = "Authentication of user '{0}' was not successful.";
const WRONG_SECRET_EVER: Row<Wording> = {
  '2.0': early('Authentication of user {0} was not successful due to wrong credentials.'),
  '3.1': early('Authentication of user "{0}" was not successful due to wrong credentials.'),
  '4.0': titled('Authentication of user "{0}" was not successful due to wrong credentials.'),
  '4.2.0': wording(500, 'External Problem', WRONG_SECRET),
  '6.3': wording(502, 'External Service Error', WRONG_SECRET),
  '6.4': wording(401, 'Authentication Failed', WRONG_SECRET),
};
const NO_JOB_STRINGS = {
  '2.0': early('Requested job info with Id={0} does not exist in the system.'),
  '3.1': early('Requested job info with Id: "{0}" does not exist in the system.'),
  '4.0': titled('Requested job info with Id: "{0}" does not exist in the system.'),
} as const;
const FOREIGN = "Logged user '{0}' is not authorized to query job info '{1}'.";
const PATH = "Requested path '{0}' was not found. Exception message: '{1}'.";

const FAILURES: Readonly<Record<FailureKind, Row<Wording>>> = {
  /** {0}: the code. */
  sessionUnknown: {
    '2.0': early('Session code {0} is not valid. Please go through the authentication process.'),
    '4.0': titled('Session code "{0}" is not present in the database.'),
    '4.2.0': wording(500, 'External Problem', NOT_PRESENT),
    '4.2': wording(401, SESSION_TITLE, NOT_PRESENT),
    '6.2': wording(401, 'Unauthorized Access', 'Unauthorized'),
    '6.4': wording(401, SESSION_TITLE, NOT_PRESENT),
  },
  /** {0}: the code. {1}: when. */
  sessionExpired: {
    '2.0': early('Session code {0} already expired. Please repeat the authentication process.'),
    '4.0': titled('Session code "{0}" already expired at "{1}".'),
    '4.2.0': wording(500, 'External Problem', EXPIRED),
    '4.2': wording(401, SESSION_TITLE, EXPIRED),
  },
  /** {0}: the user. */
  wrongSecret: WRONG_SECRET_EVER,
  unknownUser: {
    ...WRONG_SECRET_EVER,
    '3.1': early('Authentication of user {0} was not successful due to wrong credentials.'),
    '4.2.0': UNEXPECTED,
    '5.0': wording(500, 'External Problem', WRONG_SECRET),
  },
  /** {0}: the text of the validators. */
  invalid: {
    '2.0': early('{0}'),
    '4.0': titled('{0}'),
    '4.2.0': wording(404, 'Validation Problem', '{0}'),
    '6.4': wording(400, 'Invalid Request', '{0}'),
  },
  nullList: { ...UNEXPECTED_EVER, '2.1': early('Object reference not set to an instance of an object.') },
  /** {0}: the job. */
  noSuchJob: {
    ...NO_JOB_STRINGS,
    '4.2.0': wording(404, 'Validation Problem', "SubmittedJobInfoId '{0}' was not found."),
  },
  noSuchJobInfo: {
    ...NO_JOB_STRINGS,
    '4.2.0': wording(404, 'Validation Problem', "Job '{0}' does not exist in the HEAppE."),
  },
  /** {0}: the user. {1}: the job. */
  foreignJob: {
    '2.0': early('Logged user {0} is not authorized to work with job info with ID {1}'),
    '3.1': early('Logged user: "{0}" is not authorized to work with job info with id: "{1}"'),
    '4.0': titled('Logged user: "{0}" is not authorized to work with job info with id: "{1}"'),
    '4.2.0': wording(500, 'External Problem', FOREIGN),
    '6.2': wording(401, SESSION_TITLE, FOREIGN),
    '6.4': wording(403, 'Access Forbidden', FOREIGN),
  },
  /** {0}: the name. {1}: the text of the SFTP server. */
  noSuchFile: {
    ...UNEXPECTED_EVER,
    '3.1': early('{1}'),
    '4.0': titled('{1}'),
    '4.2.0': wording(500, 'External Problem', PATH),
    '5.0': wording(400, 'Invalid Request', PATH),
  },
  /** A directory, or a file without permission; the same. */
  unreadableFile: { ...UNEXPECTED_EVER, '5.0': wording(400, 'Invalid Request', PATH) },
  emptyPath: { ...UNEXPECTED_EVER, '6.3': wording(502, 'SSH Problem', 'Failure') },
  unexpected: UNEXPECTED_EVER,
  /** {0}: what fails outside of the service. */
  external: {
    '2.0': early('{0}'),
    '4.0': titled('{0}'),
    '4.2.0': wording(500, 'External Problem', '{0}'),
    '6.3': wording(502, 'External Service Error', '{0}'),
  },
};

export function wordingOf(kind: FailureKind, release: ReleaseName): Wording {
  return valueAt(FAILURES[kind], release);
}
