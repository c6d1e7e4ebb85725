<?php

/**
 * FileTransferWs and JobManagementWs on PHP's SoapServer, each at its name. They share nothing with the program but the
 * WSDL. In CONTRACT_DIRECTORY they find it under the name of the service, and job.json (what they serve), keep open-key,
 * and append what they understood to calls.jsonl.
 */

declare(strict_types=1);

/** The five operations for one job. */
final class FileTransferWs
{
    private array $habits;

    public function __construct(private string $directory, private array $job)
    {
        $this->habits = $job['habits'];
    }

    public function GetFileTransferMethod(): array
    {
        $method = $this->job['method'];
        if ($method === null) {
            return $this->absent('GetFileTransferMethodResult');
        }
        if (isset($method['credentials'])) {
            file_put_contents("$this->directory/open-key", $method['credentials']['publicKey']);
        }
        return ['GetFileTransferMethodResult' => $method];
    }

    public function EndFileTransfer(stdClass $request): array
    {
        $used = $request->usedTransferMethod ?? new stdClass();
        if (($used->protocol ?? null) === 'NetworkShare') {
            return [];
        }
        $key = "$this->directory/open-key";
        if (!file_exists($key) || file_get_contents($key) !== ($used->credentials->publicKey ?? null)) {
            throw new SoapFault('Server', 'There is no temporary key with this public key.');
        }
        unlink($key);
        return [];
    }

    public function DownloadPartsOfJobFilesFromCluster(stdClass $request): array
    {
        $entries = $this->habits['nilEntries'] ? [null] : [];
        foreach (array_reverse($request->taskFileOffsets->TaskFileOffsetExt ?? []) as $wanted) {
            $live = $this->job['live']["$wanted->submittedTaskInfoId/$wanted->fileType"] ?? null;
            if ($live !== null) {
                $entries[] = $this->entry($wanted, base64_decode($live['content']), $live['relativePath']);
            }
        }
        return ['DownloadPartsOfJobFilesFromClusterResult' => ['JobFileContentExt' => $entries]];
    }

    public function ListChangedFilesForJob(): array
    {
        if ($this->job['held']) {
            return $this->absent('ListChangedFilesForJobResult');
        }
        $names = array_column($this->job['files'], 'name');
        return ['ListChangedFilesForJobResult' => [
            'string' => $this->habits['nilEntries'] ? [null, ...$names, null] : $names,
        ]];
    }

    public function DownloadFileFromCluster(stdClass $request): array
    {
        foreach ($this->job['files'] as $file) {
            if ($file['name'] === ($request->relativeFilePath ?? null)) {
                return ['DownloadFileFromClusterResult' => base64_decode($file['bytes'])];
            }
        }
        if ($this->habits['missingFile'] === 'fault') {
            throw new SoapFault('Server', 'There is no such file.');
        }
        return $this->absent('DownloadFileFromClusterResult');
    }

    private function entry(stdClass $wanted, string $bytes, string $relativePath): array
    {
        $content = substr($bytes, $wanted->offset ?? 0);
        $contentIsAbsent = $content === '' && $this->habits['emptyContent'] === 'none';
        $pathIsAbsent = $this->habits['relativePath'] === 'none';
        $offsets = ['echo' => $wanted->offset, 'nil' => null, 'zero' => 0];
        return [
            ...($contentIsAbsent ? $this->absent('content') : ['content' => $content]),
            ...($pathIsAbsent ? $this->absent('relativePath') : ['relativePath' => $relativePath]),
            'offset' => $offsets[$this->habits['offsetEcho']],
            'fileType' => $wanted->fileType,
            'submittedTaskInfoId' => $wanted->submittedTaskInfoId,
        ];
    }

    /** An optional member without a value: left out, or nil. */
    private function absent(string $name): array
    {
        if (!$this->habits['nullMembers']) {
            return [];
        }
        $namespace = htmlspecialchars($this->job['namespace'], ENT_XML1);
        $xsi = 'http://www.w3.org/2001/XMLSchema-instance';
        return [$name => new SoapVar("<$name xmlns=\"$namespace\" xmlns:i=\"$xsi\" i:nil=\"true\"/>", XSD_ANYXML)];
    }
}

/** What is told of jobs. */
final class JobManagementWs
{
    public function __construct(private array $job)
    {
    }

    public function GetCurrentInfoForJob(stdClass $request): array
    {
        foreach ($this->job['information'] as $told) {
            if ($told['id'] === (string) $request->submittedJobInfoId) {
                return ['GetCurrentInfoForJobResult' => $told];
            }
        }
        throw new SoapFault('Server', "Specified job with id $request->submittedJobInfoId does not exist.");
    }

    public function ListJobsForCurrentUser(): array
    {
        $nil = $this->job['habits']['nilEntries'] ? [null] : [];
        return ['ListJobsForCurrentUserResult' => ['SubmittedJobInfoExt' => [...$nil, ...$this->job['information']]]];
    }
}

/** Writes down each call, refuses what is not of the session or not for the job, and lets the rest through. */
final class Entrance
{
    public function __construct(private string $directory, private array $job, private string $raw, private object $service)
    {
    }

    public function __call(string $operation, array $arguments): mixed
    {
        [$request] = $arguments;
        $this->record($operation, $request);
        $this->refuse($request);
        // An answer that a test gives word by word.
        return $this->job['answers'][$operation] ?? $this->service->$operation($request);
    }

    private function record(string $operation, stdClass $request): void
    {
        $call = [
            'operation' => $operation,
            'version' => str_contains($this->raw, '"http://www.w3.org/2003/05/soap-envelope"') ? '1.2' : '1.1',
            'contentType' => $_SERVER['CONTENT_TYPE'] ?? null,
            'soapAction' => $_SERVER['HTTP_SOAPACTION'] ?? null,
            'authorization' => $_SERVER['HTTP_AUTHORIZATION'] ?? null,
            'request' => self::told($request),
            'raw' => $this->raw,
        ];
        file_put_contents("$this->directory/calls.jsonl", json_encode($call, JSON_THROW_ON_ERROR) . "\n", FILE_APPEND);
    }

    private function refuse(stdClass $request): void
    {
        if ($this->job['fault'] !== null) {
            throw new SoapFault('Server', $this->job['fault']);
        }
        $code = $request->sessionCode ?? null;
        $authorization = $_SERVER['HTTP_AUTHORIZATION'] ?? null;
        if ($code !== $this->job['sessionCode'] && $authorization !== "Bearer {$this->job['token']}") {
            throw new SoapFault('Server', "Session code $code is not valid");
        }
        if ($this->service instanceof FileTransferWs && (string) $request->submittedJobInfoId !== $this->job['jobId']) {
            throw new SoapFault('Server', "Specified job with id $request->submittedJobInfoId does not exist.");
        }
    }

    /** A value for JSON: whole numbers as text, for JSON's are not exact over 64 bits. */
    private static function told(mixed $value): mixed
    {
        return match (true) {
            is_int($value) => (string) $value,
            is_array($value) => array_map(self::told(...), $value),
            $value instanceof stdClass => (object) array_map(self::told(...), get_object_vars($value)),
            is_string($value), $value === null => $value,
            default => ['unexpected' => get_debug_type($value)],
        };
    }
}

$directory = getenv('CONTRACT_DIRECTORY');
$job = json_decode(file_get_contents("$directory/job.json"), true, 512, JSON_THROW_ON_ERROR);
$raw = file_get_contents('php://input');
$ofJobs = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH) === '/JobManagementWs';
$service = $ofJobs ? new JobManagementWs($job) : new FileTransferWs($directory, $job);
$server = new SoapServer("$directory/" . $service::class . '.wsdl', [
    'cache_wsdl' => WSDL_CACHE_NONE,
    'encoding' => 'UTF-8',
    'features' => SOAP_SINGLE_ELEMENT_ARRAYS,
]);
$server->setObject(new Entrance($directory, $job, $raw, $service));
$server->handle($raw);
