/** The contract against the sandbox over REST, as its main releases have it (docs/dev/rest.md). */
import { contractOf } from './contract.ts';
import { SandboxService } from './sandbox-service.ts';
import { MAIN_RELEASES, restDialect } from './service.ts';

contractOf('the sandbox', () => SandboxService.start(), MAIN_RELEASES.map(restDialect));
