from documents.models.documents import Document as Document
from documents.models.documents import DocumentChunk as DocumentChunk
from documents.models.processing import DocumentProcessingJob as DocumentProcessingJob
from documents.models.processing import Stage as Stage
from documents.models.workspaces import Membership as Membership
from documents.models.workspaces import User as User
from documents.models.workspaces import Workspace as Workspace
from documents.models.workspaces import visible_to as visible_to
