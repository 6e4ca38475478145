from workspaces.people_admin import GroupsAdmin as GroupsAdmin
from workspaces.people_admin import PeopleAdmin as PeopleAdmin
